//! Handlers and mains that pass errors of any type on with `?`.

use std::error::Error;

use anyhow::Context as _;
use mcpbolt::client::{Client, block_on};
use mcpbolt::prelude::*;
use serde_json::json;

type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[error("there is no shelf {0}")]
struct NoShelf(u8);

fn fails<E>(error: E) -> Result<String, E> {
    Err(error)
}

fn no_number() -> anyhow::Result<String> {
    let number: i32 = "x".parse().context("no number")?;
    Ok(number.to_string())
}

/// Fails with an error of this kind.
#[tool]
async fn own(kind: &str) -> Result<String, HandlerError> {
    Ok(match kind {
        "anyhow" => no_number()?,
        "thiserror" => fails(NoShelf(7))?,
        "std" => "x".parse::<i32>()?.to_string(),
        "boxed" => fails(BoxError::from(NoShelf(7)))?,
        "string" => fails("a string".to_owned())?,
        "text" => fails("a text")?,
        _ => fails(HandlerError::typed("CONFLICT", "taken"))?,
    })
}

/// Fails with an error of this kind.
#[tool]
fn boxed(kind: &str) -> Result<String, BoxError> {
    Ok(match kind {
        "anyhow" => no_number()?,
        "thiserror" => fails(NoShelf(7))?,
        "std" => "x".parse::<i32>()?.to_string(),
        "boxed" => fails(BoxError::from(NoShelf(7)))?,
        "string" => fails("a string".to_owned())?,
        "text" => fails("a text")?,
        _ => fails(HandlerError::typed("CONFLICT", "taken").into_boxed())?,
    })
}

/// Fails with an error of this kind.
#[tool(blocking)]
fn collected(kind: &str) -> anyhow::Result<String> {
    Ok(match kind {
        "anyhow" => no_number()?,
        "thiserror" => fails(NoShelf(7))?,
        "std" => "x".parse::<i32>()?.to_string(),
        "boxed" => fails(BoxError::from(NoShelf(7))).map_err(anyhow::Error::from_boxed)?,
        "string" => anyhow::bail!("a string"),
        "text" => fails("a text").map_err(anyhow::Error::msg)?,
        _ => {
            let taken = HandlerError::typed("CONFLICT", "taken").into_boxed();
            fails(taken).map_err(anyhow::Error::from_boxed)?
        }
    })
}

#[test]
fn an_error_of_any_type_is_passed_on_with_its_sources() -> Result<(), Box<dyn Error>> {
    let server = Server::builder("fallible", "1.0.0");
    let server = server.with(handlers![own, boxed, collected]).build()?;
    let client = block_on(Client::builder("me", "1").connect(&server))?;
    for tool in ["own", "boxed", "collected"] {
        for (kind, text) in [
            ("anyhow", "no number: invalid digit found in string"),
            ("thiserror", "there is no shelf 7"),
            ("std", "invalid digit found in string"),
            ("boxed", "there is no shelf 7"),
            ("string", "a string"),
            ("text", "a text"),
            ("own", "taken"),
        ] {
            let result = client.call_tool(tool, &json!({"kind": kind})).wait()?;
            assert!(result.is_error, "{tool} {kind}");
            assert_eq!(result.text(), text, "{tool} {kind}");
            let is_typed = result.structured_content.is_some();
            // anyhow keeps the text of an error that was boxed, and hides its type.
            let keeps_type = kind == "own" && tool != "collected";
            assert_eq!(is_typed, keeps_type, "{tool} {kind}");
        }
    }
    Ok(())
}

/// A main may collect errors in any of these types.
#[test]
fn the_errors_of_building_and_calling_are_passed_on_in_a_main() {
    fn of_std() -> Result<(), Box<dyn Error>> {
        let server = Server::builder("s", "1").with(handlers![own]).build()?;
        let client = block_on(Client::builder("me", "1").connect(&server))?;
        client
            .call::<String>("own", &json!({"kind": "text"}))
            .wait()?;
        Ok(())
    }
    fn of_anyhow() -> anyhow::Result<()> {
        let server = Server::builder("s", "1").with(handlers![own]).build()?;
        let client = block_on(Client::builder("me", "1").connect(&server))?;
        client
            .call::<String>("own", &json!({"kind": "text"}))
            .wait()?;
        Ok(())
    }
    let expected = "tool \"own\" failed: a text";
    assert_eq!(of_std().unwrap_err().to_string(), expected);
    assert_eq!(of_anyhow().unwrap_err().to_string(), expected);
}
