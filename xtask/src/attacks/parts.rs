//! The notation for bytes in the corpus: texts, hexadecimal digits, repetitions, and words (`$name`) for
//! values that are known only at run time.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::h2::H2;

/// Bytes in parts, which are concatenated.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Parts(Joined);

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Joined {
    One(Part),
    All(Vec<Part>),
}

impl Default for Joined {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Part {
    Text(String),
    Hex { hex: String },
    H2 { h2: H2 },
    Repeated { repeat: String, count: usize },
}

/// The values of words.
#[derive(Clone, Debug, Default)]
pub struct Words(BTreeMap<String, String>);

impl Words {
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Replaces each word (`$name`) in a text with its value, which may contain words itself.
    pub fn put_into(&self, text: &str) -> String {
        let mut done = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            done.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            match self.0.get(&rest[..end]) {
                Some(value) => {
                    done.push_str(&self.put_into(value));
                    rest = &rest[end..];
                }
                None => done.push('$'),
            }
        }
        done + rest
    }
}

impl Parts {
    /// The bytes.
    pub fn bytes(&self, words: &Words) -> Vec<u8> {
        let parts = match &self.0 {
            Joined::One(part) => std::slice::from_ref(part),
            Joined::All(parts) => parts,
        };
        let mut bytes = Vec::new();
        for part in parts {
            match part {
                Part::Text(text) => bytes.extend_from_slice(words.put_into(text).as_bytes()),
                Part::Hex { hex } => bytes.extend_from_slice(&unhex(hex)),
                Part::H2 { h2 } => bytes.extend_from_slice(&h2.bytes(|text| words.put_into(text))),
                Part::Repeated { repeat, count } => {
                    bytes.extend_from_slice(words.put_into(repeat).repeat(*count).as_bytes());
                }
            }
        }
        bytes
    }

    /// The bytes as a text.
    pub fn text(&self, words: &Words) -> String {
        String::from_utf8_lossy(&self.bytes(words)).into_owned()
    }
}

fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .chars()
        .filter_map(|c| c.to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    let pairs = digits.chunks_exact(2);
    pairs.map(|pair| pair[0] * 16 + pair[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_and_words_replaced() {
        let mut words = Words::default();
        words.set("port", "80");
        words.set("host", "localhost:$port");
        let parts: Parts = serde_json::from_str(
            r#"["Host: $host;$else", {"hex": "0d 0A"}, {"repeat": "$port", "count": 2}]"#,
        )
        .unwrap();
        assert_eq!(parts.bytes(&words), b"Host: localhost:80;$else\r\n8080");
        let one: Parts = serde_json::from_str(r#""a""#).unwrap();
        assert_eq!(one.text(&words), "a");
    }
}
