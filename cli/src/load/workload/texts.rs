//! Texts to be echoed: each is one of a kind, and making it costs little.

/// How many bytes of a text are made from the number of its request.
pub const MARK_BYTES: usize = 16;

/// Typical input of tools: prose and code, some of it escaped in JSON, some not ASCII.
const PROSE: &str = "fn main() {\n\tprintln!(\"hello, {}\", name); // C:\\temp — naïve, 你好, 🦀\n}\nMost of what a tool is given is plain text that needs no escaping at all, like this line.\n";

/// Texts of one length.
#[derive(Debug)]
pub struct Texts {
    /// The text after the mark.
    rest: String,
    /// The same, escaped for a JSON string.
    escaped: String,
}

impl Texts {
    /// Texts of so many bytes, at least [`MARK_BYTES`].
    pub fn new(bytes: usize) -> Self {
        let wanted = bytes.saturating_sub(MARK_BYTES);
        let mut rest = PROSE.repeat(wanted / PROSE.len() + 1);
        rest.truncate(rest.floor_char_boundary(wanted));
        rest.push_str(&".".repeat(wanted - rest.len()));
        let quoted = serde_json::Value::from(rest.as_str()).to_string();
        let escaped = quoted[1..quoted.len() - 1].to_owned();
        Self { rest, escaped }
    }

    /// The text of a request, escaped for a JSON string.
    pub fn append(&self, number: u64, out: &mut String) {
        out.push_str(&mark(number));
        out.push_str(&self.escaped);
    }

    /// Whether this is the text of that request.
    pub fn is_of(&self, number: u64, text: &str) -> bool {
        let rest = text.strip_prefix(&mark(number));
        rest.is_some_and(|rest| rest == self.rest)
    }

    /// About how long a text is in JSON.
    pub fn len(&self) -> usize {
        MARK_BYTES + self.escaped.len()
    }
}

/// Sixteen digits that only this number has.
pub fn mark(number: u64) -> String {
    // Multiplying by an odd number is a bijection.
    format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_long_as_asked_and_that_of_its_request() {
        for bytes in [16, 17, 100, 117, 10_000] {
            let texts = Texts::new(bytes);
            let mut json = String::new();
            texts.append(7, &mut json);
            let text: String = serde_json::from_str(&format!("\"{json}\"")).unwrap();
            assert_eq!(text.len(), bytes);
            assert!(texts.is_of(7, &text));
            assert!(!texts.is_of(8, &text), "that of another request");
            assert!(!texts.is_of(7, &text[..bytes - 1]), "a part of it");
        }
    }
}
