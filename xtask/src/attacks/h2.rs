//! HTTP/2 without TLS, as far as attacks need it: a preface and streams with literal headers, neither
//! indexed nor compressed.

use serde::Deserialize;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A connection that sends the same request on many streams.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct H2 {
    #[serde(default = "one")]
    pub streams: u32,
    /// Lines `name: value`; pseudo-headers begin with a colon.
    pub headers: Vec<String>,
    pub body: Option<String>,
    /// Whether the request of each stream is complete.
    #[serde(default = "yes")]
    pub end: bool,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

impl H2 {
    /// The bytes, with the words in each text replaced by `fill`.
    pub fn bytes(&self, fill: impl Fn(&str) -> String) -> Vec<u8> {
        let mut out = PREFACE.to_vec();
        frame(&mut out, SETTINGS, 0, 0, &[]);
        let mut head = Vec::new();
        for line in &self.headers {
            let line = fill(line);
            // The first colon of `:path` belongs to the name.
            let at = line[1..].find(':').map_or(line.len(), |at| at + 1);
            let (name, value) = line.split_at(at);
            head.push(0);
            string(&mut head, name);
            string(&mut head, value.trim_start_matches(':').trim());
        }
        let body = self.body.as_deref().map(fill);
        for stream in 0..self.streams {
            let id = stream * 2 + 1;
            let last = if self.end { END_STREAM } else { 0 };
            let of_head = if body.is_some() { 0 } else { last };
            frame(&mut out, HEADERS, END_HEADERS | of_head, id, &head);
            if let Some(body) = &body {
                frame(&mut out, DATA, last, id, body.as_bytes());
            }
        }
        out
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let len = u32::try_from(payload.len()).unwrap_or_default();
    out.extend(&len.to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

/// Encodes a string for HPACK, without Huffman coding (RFC 7541, 5.2).
fn string(out: &mut Vec<u8>, text: &str) {
    match u8::try_from(text.len()) {
        Ok(len) if len < 127 => out.push(len),
        _ => {
            out.push(127);
            let mut rest = text.len() - 127;
            while rest >= 128 {
                out.push(u8::try_from(rest % 128).unwrap_or_default() | 0x80);
                rest /= 128;
            }
            out.push(u8::try_from(rest).unwrap_or_default());
        }
    }
    out.extend(text.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_written_out() {
        let h2 = H2 {
            streams: 2,
            headers: vec![":path: /mcp".into(), "host: $h".into()],
            body: None,
            end: true,
        };
        let bytes = h2.bytes(|text| text.replace("$h", "a:1"));
        let rest = bytes.strip_prefix(PREFACE).unwrap();
        let rest = rest.strip_prefix(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
        let head = b"\0\x05:path\x04/mcp\0\x04host\x03a:1";
        let first = [&[0, 0, 22, 1, 5, 0, 0, 0, 1][..], head].concat();
        assert!(rest.starts_with(&first), "{rest:?}");
        assert_eq!(rest.len(), first.len() * 2);
    }
}
