//! Makes text from a server safe for a terminal: it cannot move the cursor, change colours, ring the bell,
//! or change the reading direction.

use std::io::{self, ErrorKind, Write};

/// Prints to stdout. If nobody reads any more, as after `| head`, the rest is dropped without an error.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a line to stderr, if anybody reads it.
pub fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// For one line: writes control characters, and those that set the text direction, as `\u{…}`.
pub fn line(text: &str) -> String {
    escaped(text, |_| false, |c| format!("\\u{{{:x}}}", u32::from(c)))
}

/// For text that may have several lines and tabs.
pub fn lines(text: &str) -> String {
    let plain = |c| matches!(c, '\n' | '\t');
    escaped(text, plain, |c| format!("\\u{{{:x}}}", u32::from(c)))
}

/// For formatted JSON: escapes these characters as JSON does, so its value stays the same.
pub fn json(text: &str) -> String {
    let plain = |c| c == '\n';
    escaped(text, plain, |c| format!("\\u{:04x}", u32::from(c)))
}

fn escaped(text: &str, plain: fn(char) -> bool, escape: fn(char) -> String) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match drives(c) && !plain(c) {
            true => shown += &escape(c),
            false => shown.push(c),
        }
    }
    shown
}

/// Whether a terminal may interpret the character: C0, DEL and C1, line and paragraph separators, and
/// Unicode's explicit directional characters.
fn drives(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_drives_a_terminal() {
        let hostile =
            "a\u{1b}[2Jb\u{9b}31m\r\u{7}\u{8}\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}z\t\n";
        for shown in [line(hostile), lines(hostile), json(hostile)] {
            let left: Vec<_> = shown.chars().filter(|c| drives(*c)).collect();
            assert!(left.iter().all(|c| matches!(c, '\n' | '\t')), "{left:?}");
        }
        assert!(!line(hostile).contains(['\n', '\t']));
        assert_eq!(lines("a\tb\n"), "a\tb\n");
        assert_eq!(line("\u{1b}[0m é ✓"), "\\u{1b}[0m é ✓");
        let written = format!("{:#}", serde_json::json!({"text": hostile}));
        let read: serde_json::Value = serde_json::from_str(&json(&written)).unwrap();
        assert_eq!(read["text"], hostile);
    }
}
