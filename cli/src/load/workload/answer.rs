//! Reads the answers of tools.

use std::borrow::Cow;

use mcpbolt::message::Message;
use serde::Deserialize;

use super::failure::Failure;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Called<'a> {
    #[serde(default)]
    is_error: bool,
    #[serde(borrow)]
    content: Vec<Block<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}

/// The text of a tool's answer: that of all its blocks.
pub fn text(answer: &Message) -> Result<Cow<'_, str>, Failure> {
    let result = answer.as_ref().result().unwrap_or_default();
    read(result)
}

fn read(result: &str) -> Result<Cow<'_, str>, Failure> {
    let Called { is_error, content } = serde_json::from_str(result)
        .map_err(|error| Failure::wrong(format!("the result is not that of a tool: {error}")))?;
    let mut blocks = content.into_iter().map(|block| block.text);
    let text = match (blocks.next(), blocks.next()) {
        (None, _) => Cow::Borrowed(""),
        (Some(text), None) => text,
        (Some(first), Some(second)) => {
            let rest: String = blocks.collect();
            Cow::Owned(format!("{first}{second}{rest}"))
        }
    };
    match is_error {
        true => Err(Failure::wrong(format!("the tool failed: {text}"))),
        false => Ok(text),
    }
}

/// Fails unless a text is the expected one.
pub fn expect(text: &str, expected: &str) -> Result<(), Failure> {
    match text == expected {
        true => Ok(()),
        false => Err(Failure::wrong("the answer is not the expected text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_the_text_of_all_its_blocks() {
        let texts = r#"{"content":[{"type":"text","text":"a\n"},{"type":"text","text":"b"},{"type":"image","data":""}]}"#;
        assert_eq!(read(texts).unwrap(), "a\nb");
        assert_eq!(read(r#"{"content":[]}"#).unwrap(), "");
        let failed = read(r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#);
        assert_eq!(failed.unwrap_err().why, "the tool failed: no");
        assert!(read(r#"{"tools":[]}"#).unwrap_err().is_answered);
    }
}
