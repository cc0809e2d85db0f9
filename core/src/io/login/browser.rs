//! Opens the user's browser.

use std::io;
use std::process::{Command, Stdio};
use std::thread;

/// Opens a web page in the user's browser, without a shell in between (R-AUC-19). Returns once the program
/// that opens it has been started; nobody can tell whether the user sees the page, so show the URL, too.
///
/// The browser is the command in the environment variable `BROWSER`, else the system's: `xdg-open`, `open`
/// on macOS, the default program for web pages on Windows.
///
/// # Errors
/// `InvalidInput` when the URL is not http or https, or has characters that no URL has. `Unsupported` when
/// there is no screen; other errors when the browser cannot be started.
pub fn open_browser(url: &str) -> io::Result<()> {
    let chosen = std::env::var("BROWSER").ok();
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].map(|name| std::env::var_os(name).is_some());
    let has_screen = !cfg!(target_os = "linux") || has_screen.contains(&true);
    let words = command(url, chosen.as_deref(), has_screen)?;
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut opener = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("starting {program}: {error}")))?;
    // A browser may live as long as this program; somebody has to take its exit status.
    thread::Builder::new()
        .name("mcpbolt-browser".into())
        .spawn(move || opener.wait())?;
    Ok(())
}

/// The words of the command that opens the URL.
fn command(url: &str, chosen: Option<&str>, has_screen: bool) -> io::Result<Vec<String>> {
    let is_web = ["https://", "http://"].iter().any(|scheme| {
        let start = url.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    if !is_web || !url.bytes().all(is_plain) {
        let why = "not the URL of a web page; a browser opens only http and https";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    // Several commands may be listed; the first one counts.
    let chosen = chosen.and_then(|all| all.split(':').find(|one| !one.trim().is_empty()));
    let words: Vec<&str> = match chosen {
        Some(chosen) => chosen.split_whitespace().collect(),
        None if cfg!(windows) => vec!["rundll32", "url.dll,FileProtocolHandler"],
        None if cfg!(target_os = "macos") => vec!["open"],
        None if has_screen => vec!["xdg-open"],
        None => {
            let why = "there is no screen (DISPLAY) and no BROWSER";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
    };
    let mut named = false;
    let mut words: Vec<String> = words
        .into_iter()
        .map(|word| {
            named |= word.contains("%s");
            word.replace("%s", url)
        })
        .collect();
    if !named {
        words.push(url.to_owned());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_pages_are_opened() {
        let fits = [
            "https://as.example/auth?a=b&c=%20d#e",
            "HTTP://127.0.0.1:80/",
            "http://[::1]/",
        ];
        for url in fits {
            assert_eq!(command(url, Some("b"), true).unwrap(), ["b", url]);
        }
        let bad = [
            "",
            "-h",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https:/x",
            "http:",
            "ms-msdt:/id",
            "https://a/ b",
            "https://a/\n-x",
            "https://a/\u{0}",
            "https://a/\u{e9}",
            "https://a/\"&calc",
            "https://a/`id`",
            "https://a/|x",
            "x https://a",
            "\u{e9}\u{e9}\u{e9}\u{e9}",
        ];
        for url in bad {
            let error = command(url, Some("b"), true).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{url}");
            assert!(open_browser(url).is_err(), "{url}");
        }
    }

    #[test]
    fn the_user_chooses_the_browser() {
        let url = "https://as.example/?a=$(id);b";
        let words = |chosen| command(url, Some(chosen), false).unwrap();
        assert_eq!(words("lynx -x"), ["lynx", "-x", url]);
        assert_eq!(
            words(":first --at=%s:second"),
            ["first", &format!("--at={url}")]
        );
        if cfg!(target_os = "linux") {
            assert_eq!(command(url, None, true).unwrap(), ["xdg-open", url]);
            let error = command(url, Some(""), false).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        }
    }
}
