//! Icons of servers, prompts, tools and resources: which of them may be fetched and shown.
//!
//! The engine passes icons on unchanged and fetches none (R-ICO-05). A program that shows icons
//! asks here where an icon may come from, and then whether the fetched image is acceptable.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Other;

/// Maximum size of an image to show, in bytes.
pub const MAX_ICON_BYTES: usize = 1 << 20;

/// An icon as a server lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// The location: an `https:` or a `data:` URI.
    pub src: String,
    /// Its MIME type, as the server states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The sizes it is made for: `48x48`, `any`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
}

/// The source of an icon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IconSource {
    /// The image itself, from a `data:` URI.
    Inline(Vec<u8>),
    /// The image may be fetched from this URL, without credentials and without redirects to another
    /// origin: see [`may_redirect`].
    Fetch {
        /// The URL.
        url: String,
        /// Whether the URL has the server's own origin. Prefer such icons.
        same_origin: bool,
    },
}

/// The format of an image, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageKind {
    /// PNG. Every client shows it (R-ICO-03).
    Png,
    /// JPEG. Every client shows it.
    Jpeg,
    /// WebP. Clients should show it.
    Webp,
    /// SVG. Clients should show it, but only where scripts cannot run, because it may contain some.
    Svg,
}

impl Icon {
    /// Reads a list of icons; skips those that cannot be read.
    pub fn all(icons: &Value) -> Vec<Self> {
        let icons = icons.as_array().into_iter().flatten();
        icons
            .filter_map(|icon| Self::deserialize(icon).ok())
            .collect()
    }

    /// Returns the source of an icon; `None` when it must not be shown: its URI has another scheme
    /// than `https` or `data`, contains user information or is malformed, or its inline data is not
    /// base64 of an image of at most [`MAX_ICON_BYTES`] (R-ICO-02, R-ICO-04). `server` is the
    /// server's own URL, if it has one.
    ///
    /// ```
    /// use mcpbolt::model::{Icon, IconSource};
    /// let icons = Icon::all(&serde_json::json!([{"src": "javascript:alert(1)"},
    ///     {"src": "https://example.com/a.png"}]));
    /// assert_eq!(icons[0].source(None), None);
    /// let url = "https://example.com/a.png".to_owned();
    /// let server = Some("https://example.com/mcp");
    /// assert_eq!(icons[1].source(server), Some(IconSource::Fetch { url, same_origin: true }));
    /// ```
    pub fn source(&self, server: Option<&str>) -> Option<IconSource> {
        if let Some(data) = strip_scheme(&self.src, "data:") {
            let (kind, data) = data.split_once(',')?;
            let kind = kind.strip_suffix(";base64")?;
            if !kind.starts_with("image/") || data.len() / 4 * 3 > MAX_ICON_BYTES {
                return None;
            }
            return STANDARD.decode(data).ok().map(IconSource::Inline);
        }
        let origin = origin(&self.src)?;
        Some(IconSource::Fetch {
            url: self.src.clone(),
            same_origin: server.and_then(self::origin) == Some(origin),
        })
    }
}

/// Returns whether a fetch of an icon may follow a redirect: only within the same `https` origin
/// (R-ICO-02).
pub fn may_redirect(from: &str, to: &str) -> bool {
    let from = origin(from);
    from.is_some() && from == origin(to)
}

/// Detects an image's format from its bytes. `None` when the format must not be shown, the image is
/// longer than [`MAX_ICON_BYTES`], or `said`, the stated MIME type, differs (R-ICO-03, R-ICO-04).
///
/// ```
/// use mcpbolt::model::{ImageKind, image_kind};
/// let png = b"\x89PNG\r\n\x1a\n and so on";
/// assert_eq!(image_kind(png, Some("image/png")), Some(ImageKind::Png));
/// assert_eq!(image_kind(png, Some("image/jpeg")), None);
/// assert_eq!(image_kind(b"<html>", Some("image/png")), None);
/// ```
pub fn image_kind(bytes: &[u8], said: Option<&str>) -> Option<ImageKind> {
    let kind = match bytes {
        _ if bytes.len() > MAX_ICON_BYTES => return None,
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => ImageKind::Png,
        [0xff, 0xd8, 0xff, ..] => ImageKind::Jpeg,
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => ImageKind::Webp,
        _ if is_svg(bytes) => ImageKind::Svg,
        _ => return None,
    };
    let names: &[&str] = match kind {
        ImageKind::Png => &["image/png"],
        ImageKind::Jpeg => &["image/jpeg", "image/jpg"],
        ImageKind::Webp => &["image/webp"],
        ImageKind::Svg => &["image/svg+xml"],
    };
    let fits = said.is_none_or(|said| names.iter().any(|name| said.eq_ignore_ascii_case(name)));
    fits.then_some(kind)
}

/// Returns whether the bytes are a document whose first element is `svg`.
fn is_svg(bytes: &[u8]) -> bool {
    let Ok(mut text) = std::str::from_utf8(bytes) else {
        return false;
    };
    text = text.trim_start_matches('\u{feff}').trim_start();
    for (begin, end) in [("<?xml", "?>"), ("<!--", "-->"), ("<!DOCTYPE svg", ">")] {
        while text.starts_with(begin) {
            let Some((_, rest)) = text.split_once(end) else {
                return false;
            };
            text = rest.trim_start();
        }
    }
    text.strip_prefix("<svg")
        .is_some_and(|rest| rest.starts_with([' ', '>', '\n', '\t', '\r']))
}

fn strip_scheme<'a>(uri: &'a str, scheme: &str) -> Option<&'a str> {
    let (head, rest) = uri.split_at_checked(scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// The host, in lower case, and port of an `https` URL; `None` for other URLs and for URLs with
/// user information.
fn origin(url: &str) -> Option<(String, u16)> {
    let broken = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    let rest = strip_scheme(url, "https://").filter(|_| !url.contains(broken))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.rsplit_once(':') {
        // An IPv6 address without a port ends with its bracket.
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, 443),
    };
    (!host.is_empty() && !authority.contains('@')).then(|| (host.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn icon(src: &str) -> Icon {
        Icon::all(&json!([{ "src": src }])).remove(0)
    }

    /// R-ICO-02, R-ICO-04, R-ICO-05.
    #[test]
    fn only_https_and_data_are_sources() {
        for bad in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "file:///etc/passwd",
            "ftp://example.com/a.png",
            "ws://example.com/a.png",
            "app://icon",
            "http://example.com/a.png",
            "//example.com/a.png",
            "a.png",
            "",
            "https://",
            "https://:443/a.png",
            "https://user:password@example.com/a.png",
            "https://example.com:port/a.png",
            "https://exam\nple.com/a.png",
            "https://example.com\\@evil.com/a.png",
            "data:text/html;base64,PGI+",
            "data:image/png,plain",
            "data:image/png;base64,????",
        ] {
            assert_eq!(icon(bad).source(None), None, "{bad}");
        }
        let inline = icon("data:image/png;base64,iVBORw==").source(None);
        assert_eq!(inline, Some(IconSource::Inline(b"\x89PNG".to_vec())));
        let long = format!("data:image/png;base64,{}", "A".repeat(2 * MAX_ICON_BYTES));
        assert_eq!(icon(&long).source(None), None);
    }

    /// R-ICO-02, R-ICO-04.
    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        let server = Some("https://Example.com/mcp");
        for (url, same) in [
            ("https://example.com/a.png", true),
            ("HTTPS://EXAMPLE.com:443?a", true),
            ("https://example.com:444/a.png", false),
            ("https://cdn.example.com/a.png", false),
            ("https://example.com.evil.com/a.png", false),
        ] {
            let (url, same_origin) = (url.to_owned(), same);
            let source = icon(&url).source(server);
            assert_eq!(may_redirect("https://example.com/x", &url), same, "{url}");
            assert_eq!(source, Some(IconSource::Fetch { url, same_origin }));
        }
        assert!(may_redirect("https://[::1]/a", "https://[::1]:443/b"));
        for to in ["http://example.com/a", "data:image/png;base64,", "/a.png"] {
            assert!(!may_redirect("https://example.com/a", to), "{to}");
        }
        assert!(!may_redirect(
            "http://example.com/a",
            "http://example.com/b"
        ));
    }

    /// R-ICO-03, R-ICO-04.
    #[test]
    fn an_image_is_what_its_bytes_say() {
        let webp = b"RIFF\x01\x02\x03\x04WEBPVP8 ";
        let svg = "<?xml version=\"1.0\"?>\n<!-- an icon --><!DOCTYPE svg>\n<svg xmlns=\"x\"/>";
        let all: [(&[u8], &str, ImageKind); 5] = [
            (b"\x89PNG\r\n\x1a\n...", "image/png", ImageKind::Png),
            (b"\xff\xd8\xff\xe0", "image/jpeg", ImageKind::Jpeg),
            (webp, "image/webp", ImageKind::Webp),
            (svg.as_bytes(), "image/svg+xml", ImageKind::Svg),
            (b"<svg>", "IMAGE/SVG+XML", ImageKind::Svg),
        ];
        for (bytes, said, kind) in all {
            assert_eq!(image_kind(bytes, None), Some(kind));
            assert_eq!(image_kind(bytes, Some(said)), Some(kind), "{said}");
            assert_eq!(image_kind(bytes, Some("text/html")), None);
        }
        for other in [
            "",
            "<html><svg>",
            "<svgx>",
            "GIF89a",
            "\u{89}PNG",
            "<!-- <svg>",
        ] {
            assert_eq!(image_kind(other.as_bytes(), None), None, "{other}");
        }
        let mut long = b"\x89PNG\r\n\x1a\n".to_vec();
        long.resize(MAX_ICON_BYTES + 1, 0);
        assert_eq!(image_kind(&long, None), None);
    }
}
