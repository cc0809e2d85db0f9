//! The corpus of requests to resource servers.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::repo;

/// The corpus: `corpus/tokens.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corpus {
    /// The policies of servers, by name; `$issuer` stands for the authorization server.
    pub servers: BTreeMap<String, Value>,
    pub cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// The policy of the server.
    pub server: String,
    pub steps: Vec<Step>,
}

/// A change of the authorization server, and a request with its answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What the authorization server does from now on.
    pub authority: Option<Authority>,
    /// The token: a text as it is, or what differs from a good one.
    pub token: Option<Value>,
    #[serde(default = "bearer")]
    pub scheme: String,
    /// The proofs: texts as they are, or what differs from a good one.
    #[serde(default)]
    pub proofs: Vec<Value>,
    /// Further lines of the head.
    #[serde(default)]
    pub headers: Vec<String>,
    #[serde(default = "post")]
    pub method: String,
    #[serde(default = "mcp")]
    pub path: String,
    #[serde(default)]
    pub ask: Ask,
    pub expect: Option<Expected>,
}

fn bearer() -> String {
    "Bearer".into()
}

fn post() -> String {
    "POST".into()
}

fn mcp() -> String {
    "/mcp".into()
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Authority {
    /// Whether it answers with errors.
    pub down: Option<bool>,
    /// The names of the keys that it publishes.
    pub keys: Option<Vec<String>>,
    /// The answers to questions about tokens, by token.
    pub tokens: Option<Map<String, Value>>,
    /// Waits so many milliseconds.
    pub wait: Option<u64>,
}

/// What the request asks for.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ask {
    Call(String),
    Read(String),
    Prompt(String),
    /// The names in a list.
    List(String),
    /// Nothing: the request has no body.
    Nothing,
}

impl Default for Ask {
    fn default() -> Self {
        Self::Call("note.read".into())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    pub status: u16,
    /// The schemes of the challenges, in order.
    pub schemes: Option<Vec<String>>,
    /// The `error` of the first challenge; an empty text for none.
    pub error: Option<String>,
    /// The `scope` of each challenge; an empty text for none.
    pub scope: Option<String>,
    /// A part of the `error_description`.
    pub why: Option<String>,
    /// Parts of the body.
    #[serde(default)]
    pub body: Vec<String>,
    /// Texts that are not in the body.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// Headers and parts of their values; an empty text for headers that are missing.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How often keys were fetched and tokens asked about, since the server started.
    pub asked: Option<usize>,
}

pub fn load() -> Result<Corpus> {
    let path = repo::root().join("corpus/tokens.json");
    let text = std::fs::read_to_string(&path)?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}
