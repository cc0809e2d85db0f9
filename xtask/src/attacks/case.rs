//! The attack corpus: what each attack sends, and the required answers. `corpus/README.md` describes it.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::parts::Parts;
use crate::repo;

/// The folder of the corpus, relative to the root.
pub const CORPUS: &str = "corpus/attacks";

/// One attack.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// The class of weakness that it tests.
    pub class: String,
    /// The gain of an attacker, if the attack worked.
    pub why: String,
    pub carriers: Vec<Carrier>,
    #[serde(default)]
    pub server: Setup,
    /// Whether it needs a server of its own.
    #[serde(default)]
    pub alone: bool,
    /// How often the tool `touch` may run.
    #[serde(default)]
    pub runs: u64,
    /// MiB by which the server may grow during the attack.
    pub peak: Option<u64>,
    /// MiB by which the server may still be larger after the attacker is gone.
    pub grows: Option<u64>,
    /// How connections begin.
    #[serde(default)]
    pub era: Era,
    pub steps: Vec<Step>,
}

/// The transport of an attack.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    Http,
    Ws,
    Tcp,
    Unix,
    Stdio,
}

impl Carrier {
    pub const ALL: [Self; 5] = [Self::Http, Self::Ws, Self::Tcp, Self::Unix, Self::Stdio];

    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Ws => "ws",
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Stdio => "stdio",
        }
    }
}

/// The configuration of the server.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Setup {
    /// Anonymous clients are served; the action dialect is on.
    #[default]
    Plain,
    /// Only the tools for load generators, and all defaults.
    Bare,
    /// Clients are identified by API keys: `key-honest`, `key-alice`, `key-bob`.
    Keys,
    /// As [`Keys`](Self::Keys), and signed tokens (JWT) are taken, too.
    Tokens,
    /// Each client has three calls a day.
    Quota,
    /// A connection has two seconds to begin to speak.
    Hasty,
    /// As [`Keys`](Self::Keys), and each client has many calls a day.
    Guarded,
}

impl Setup {
    /// All setups that cases of the corpus use.
    pub const OF_CORPUS: [Self; 6] = [
        Self::Plain,
        Self::Bare,
        Self::Keys,
        Self::Tokens,
        Self::Quota,
        Self::Hasty,
    ];
}

/// How a connection begins.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    #[default]
    Handshake,
    /// Without a handshake.
    Stateless,
}

/// One step: one of `send`, `request`, `message`, `frames`, `steps`, or only a pause.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// The name of the connection, which is opened if there is none with that name.
    pub on: String,
    /// The local address of the connection.
    pub from: Option<String>,
    /// Raw bytes.
    pub send: Option<Parts>,
    /// The method and the target of an HTTP request.
    pub request: Option<String>,
    /// Lines `Name: value`; `-Name` removes a default header.
    pub headers: Vec<Parts>,
    pub body: Option<Parts>,
    /// The default headers to send with the body.
    #[serde(rename = "as")]
    pub kind: Kind,
    /// The API key of the request.
    pub key: Option<String>,
    /// A message, framed for the carrier.
    pub message: Option<Parts>,
    /// WebSocket frames.
    pub frames: Option<Vec<Frame>>,
    /// How many answers are read, each of which must be as expected; one by default.
    pub answers: Option<usize>,
    /// Milliseconds during which everything that arrives, notifications as well, is read as one text. Only
    /// `says` and `lacks` are checked then.
    pub hears: Option<u64>,
    /// Whether an honest call must be answered before anything else of this step.
    pub honest: bool,
    /// Nested steps, run `times` times, each time on new connections.
    pub steps: Vec<Self>,
    pub times: Option<usize>,
    /// Whether the connections of the nested steps stay open until the enclosing steps are done.
    pub hold: bool,
    /// Milliseconds to wait, after all of this.
    pub pause: u64,
    /// Parts of the answer to save by name: `header NAME`, a path in its JSON, or `event`, the id
    /// of its first event.
    pub keep: BTreeMap<String, String>,
    pub expect: Option<Expect>,
}

/// Sets of MCP headers.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    #[default]
    None,
    /// The headers for a JSON body.
    Json,
    /// The headers of revision 2026-07-28.
    Stateless,
    /// The headers for the session that was saved as `session`.
    Session,
}

/// A WebSocket frame.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Frame {
    pub op: u8,
    pub fin: bool,
    pub reserved: u8,
    pub mask: bool,
    pub payload: Parts,
    /// The length in its header, if it is not the payload's.
    pub claim: Option<u64>,
    pub times: usize,
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            op: 1,
            fin: true,
            reserved: 0,
            mask: true,
            payload: Parts::default(),
            claim: None,
            times: 1,
        }
    }
}

/// The allowed outcomes. One of them must match, and the answer must contain `says` but not `lacks`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// HTTP statuses.
    pub status: Vec<u16>,
    /// Error codes.
    pub code: Vec<i64>,
    /// WebSocket close codes.
    pub close: Vec<u16>,
    /// The end of the connection.
    pub closed: bool,
    /// The end of the connection, after any output.
    pub ends: bool,
    /// A result.
    pub result: bool,
    /// A result that reports the failure of a tool.
    pub failure: bool,
    /// Nothing within half a second.
    pub silence: bool,
    /// Text that the answer must contain.
    pub says: Option<Parts>,
    /// Text that the answer must not contain.
    pub lacks: Option<Parts>,
}

/// Loads all attacks, file by file.
pub fn load() -> Result<Vec<Case>> {
    let folder = repo::root().join(CORPUS);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.sort();
    let mut cases: Vec<Case> = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path)?;
        let more: Vec<Case> =
            serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        for case in more {
            let name = &case.name;
            ensure!(
                !case.steps.is_empty() && !case.carriers.is_empty(),
                "{name} is empty"
            );
            let is_new = cases.iter().all(|other| other.name != *name);
            ensure!(is_new, "two attacks are called {name}");
            let is_played = Setup::OF_CORPUS.contains(&case.server);
            ensure!(is_played, "{name} has a server that is never started");
            cases.push(case);
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_can_be_read_and_is_not_small() {
        let cases = load().unwrap();
        assert!(cases.len() >= 60, "{} attacks", cases.len());
        for carrier in Carrier::ALL {
            let its = |case: &&Case| case.carriers.contains(&carrier);
            assert!(cases.iter().filter(its).count() > 5, "{}", carrier.name());
        }
        for case in &cases {
            assert!(
                !case.why.is_empty() && !case.class.is_empty(),
                "{}",
                case.name
            );
        }
    }
}
