//! What a process has to know of a session that another one has begun, sealed in the id of the session.
//!
//! ```text
//!   base64( sealed( 1 │ begun, 4 bytes │ digest of the principal, 16 │ packed revision and introduction ) )
//! ```
//!
//! The introduction is what the client has said of itself in `initialize`: its capabilities and its name. Packing replaces
//! frequent texts by bytes that do not occur in JSON without blanks, so the id of a usual client has at most 200 bytes.

use base64::Engine as _;
// Without hyphens, by which names of workers are told from that of the session.
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use hmac_sha256::Hash;

use crate::buffer::Input;
use crate::connection::{Config, Principal};
use crate::json::reader;
use crate::mcp::Revision;
use crate::message::{self, Envelope, Frame, MessageRef};
use crate::store::StoreKeys;

/// The format that is written.
const FORMAT: u8 = 1;
/// Longest id, in bytes. The session of a client whose introduction does not fit is known to one process only.
const MAX_ID_BYTES: usize = 2048;
const DIGEST_LEN: usize = 16;

/// The frequent texts of format 1. The byte of each is its place here; control characters do not occur in JSON.
const TEXTS: [&str; 30] = [
    "2024-11-05{\"capabilities\":{",
    "2025-03-26{\"capabilities\":{",
    "2025-06-18{\"capabilities\":{",
    "2025-11-25{\"capabilities\":{",
    "\"roots\":{\"listChanged\":true}",
    "\"roots\":{\"listChanged\":false}",
    "\"roots\":{}",
    "\"sampling\":{}",
    "\"sampling\":{\"tools\":{}}",
    "\"sampling\":{\"context\":{},\"tools\":{}}",
    "\"elicitation\":{}",
    "\"elicitation\":{\"form\":{}}",
    "\"elicitation\":{\"form\":{},\"url\":{}}",
    "\"elicitation\":{\"form\":{\"applyDefaults\":true}",
    "\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{",
    "\"sampling\":{\"createMessage\":{}}",
    "\"elicitation\":{\"create\":{}}",
    "\"experimental\":{",
    "\"extensions\":{",
    "\"io.modelcontextprotocol/",
    "},\"clientInfo\":{\"name\":\"",
    "\",\"version\":\"",
    "\",\"title\":\"",
    "\",\"websiteUrl\":\"https://",
    "\",\"description\":\"",
    "\",\"icons\":[{\"src\":\"https://",
    "},",
    "\"}}",
    "client",
    ".com/",
];

/// What is known of a session.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionFacts {
    revision: Revision,
    /// When the session began, in seconds since 1970.
    pub begun: u32,
    principal: [u8; DIGEST_LEN],
    /// An object with `capabilities` and `clientInfo`.
    introduction: String,
}

impl SessionFacts {
    /// The facts of a session that an `initialize` begins at `now`; `None` if it is malformed, or will be refused.
    pub fn of(
        config: &Config,
        principal: Option<&Principal>,
        body: &Input,
        now: u32,
    ) -> Option<Self> {
        let frame = Frame::new(body.padded(), body.len())?;
        let mut envelope = Envelope::new();
        message::decode(frame, config.limits.max_depth, &mut envelope).ok()?;
        let message = MessageRef::new(frame, &envelope);
        let params = message.params()?;
        let version = reader::as_str(reader::find(params, "protocolVersion")?)?;
        let member = |name| reader::find(params, name);
        let mut introduction = String::from("{\"capabilities\":");
        introduction += &without_blanks(member("capabilities").unwrap_or("{}"));
        if let Some(client) = member("clientInfo") {
            introduction += ",\"clientInfo\":";
            introduction += &without_blanks(client);
        }
        introduction.push('}');
        Some(Self {
            revision: config.spoken(&version).or_else(|| config.handshake())?,
            begun: now,
            principal: digest(principal),
            introduction,
        })
    }

    /// The id that has these facts, for the servers of a scope; `None` if it would be too long, or the system provides no
    /// randomness.
    pub fn seal(&self, keys: &StoreKeys, scope: &str) -> Option<String> {
        let mut text = vec![FORMAT];
        text.extend_from_slice(&self.begun.to_be_bytes());
        text.extend_from_slice(&self.principal);
        text.extend_from_slice(&packed(
            &[self.revision.name(), &self.introduction].concat(),
        ));
        let id = BASE64.encode(keys.seal(&context(scope), &text).ok()?);
        (id.len() <= MAX_ID_BYTES).then_some(id)
    }

    /// The facts in an id; `None` if no process with these keys has made it for that scope.
    pub fn open(keys: &StoreKeys, scope: &str, id: &str) -> Option<Self> {
        if id.len() > MAX_ID_BYTES {
            return None;
        }
        let text = keys.open(&context(scope), &BASE64.decode(id).ok()?).ok()?;
        let (format, text) = text.split_first()?;
        let (begun, text) = text.split_first_chunk()?;
        let (principal, text) = text.split_first_chunk()?;
        if *format != FORMAT {
            return None;
        }
        let text = unpacked(text)?;
        let (revision, introduction) = text.split_at_checked(text.find('{')?)?;
        Some(Self {
            revision: Revision::parse(revision)?,
            begun: u32::from_be_bytes(*begun),
            principal: *principal,
            introduction: introduction.to_owned(),
        })
    }

    /// Whether the session was begun by this principal (R-SES-07).
    pub fn is_of(&self, principal: Option<&Principal>) -> bool {
        self.principal == digest(principal)
    }

    /// The revision of the session.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// An `initialize` that begins the same session again.
    pub fn initialize(&self) -> Input {
        let mut body = Input::new();
        let members = self.introduction.strip_prefix('{').unwrap_or_default();
        body.extend(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"");
        body.extend(self.revision.name().as_bytes());
        body.extend(b"\",");
        body.extend(members.as_bytes());
        body.extend(b"}");
        body
    }
}

/// What the ids of a scope are sealed for.
fn context(scope: &str) -> Vec<u8> {
    ["session id\0", scope].concat().into_bytes()
}

/// A digest that tells principals apart; zeros if there is none.
fn digest(principal: Option<&Principal>) -> [u8; DIGEST_LEN] {
    let mut digest = [0; DIGEST_LEN];
    if let Some(principal) = principal {
        let whole = Hash::hash(principal.as_str().as_bytes());
        digest.copy_from_slice(&whole[..DIGEST_LEN]);
    }
    digest
}

/// A valid JSON text without the blanks between its tokens.
fn without_blanks(json: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    let is_kept = |letter: &char| {
        let is_quote = *letter == '"' && !is_escaped;
        is_escaped = in_string && *letter == '\\' && !is_escaped;
        in_string ^= is_quote;
        in_string || !letter.is_ascii_whitespace()
    };
    json.chars().filter(is_kept).collect()
}

/// Replaces the frequent texts, the longest first.
fn packed(text: &str) -> Vec<u8> {
    let mut packed = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let here = TEXTS.iter().enumerate();
        let here = here.filter(|(_, text)| rest.starts_with(text.as_bytes()));
        match here.max_by_key(|(_, text)| text.len()) {
            Some((place, text)) => {
                packed.push(place as u8);
                rest = &rest[text.len()..];
            }
            None => {
                packed.push(*first);
                rest = others;
            }
        }
    }
    packed
}

fn unpacked(packed: &[u8]) -> Option<String> {
    let mut text = Vec::with_capacity(packed.len() * 2);
    for byte in packed {
        match TEXTS.get(usize::from(*byte)) {
            Some(own) => text.extend_from_slice(own.as_bytes()),
            None => text.push(*byte),
        }
    }
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::Side;

    fn keys() -> StoreKeys {
        StoreKeys::new([1; 32], [2; 32])
    }

    fn facts(params: &str) -> Option<SessionFacts> {
        let mut body = Input::new();
        let message = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"initialize\",\"params\":{params}}}"
        );
        body.extend(message.as_bytes());
        let config = Config::new(Side::Server, "test", "1");
        let alice = Principal::new("alice");
        SessionFacts::of(&config, Some(&alice), &body, 1_800_000_000)
    }

    const CLIENTS: [&str; 4] = [
        r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},
            "elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"claude-code","title":"Claude Code",
            "version":"2.1.14","websiteUrl":"https://claude.com/claude-code"}}"#,
        r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},
            "clientInfo":{"name":"codex-mcp-client","version":"0.114.0","title":"Codex"}}"#,
        r#"{"protocolVersion":"2025-03-26","capabilities":{"sampling":{},"roots":{"listChanged":true}},
            "clientInfo":{"name":"Visual Studio Code","version":"1.128.0"}}"#,
        r#"{ "protocolVersion" : "2025-11-25", "capabilities" : {"tasks":{"list":{},"cancel":{},"requests":
            {"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}},
            "clientInfo":{"name":"mcp-inspector","version":"0.30.1"}}"#,
    ];

    /// R-SES-02
    #[test]
    fn the_id_of_a_usual_client_has_at_most_200_bytes() {
        for params in CLIENTS {
            let facts = facts(params).unwrap();
            let id = facts.seal(&keys(), "").unwrap();
            assert!(id.len() <= 200, "{}: {params}", id.len());
            assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
            assert_ne!(id, facts.seal(&keys(), "").unwrap());
            assert_eq!(SessionFacts::open(&keys(), "", &id).unwrap(), facts);
            assert_eq!(SessionFacts::open(&keys(), "other:", &id), None);
            let stranger = StoreKeys::new([1; 32], [3; 32]);
            assert_eq!(SessionFacts::open(&stranger, "", &id), None);
            for at in 0..id.len() {
                assert_eq!(SessionFacts::open(&keys(), "", &id[..at]), None);
            }
        }
    }

    #[test]
    fn a_session_begins_again_as_it_began() {
        for params in CLIENTS {
            let facts = facts(params).unwrap();
            let body = facts.initialize();
            let own: serde_json::Value = serde_json::from_slice(body.filled()).unwrap();
            let given: serde_json::Value = serde_json::from_str(params).unwrap();
            assert_eq!(own["params"], given);
            assert!(facts.is_of(Some(&Principal::new("alice"))));
            assert!(!facts.is_of(Some(&Principal::new("bob"))) && !facts.is_of(None));
        }
        // A revision that is not spoken is the one that is agreed on.
        let other = CLIENTS[0].replace("2025-11-25", "2031-01-01");
        assert_eq!(
            facts(&other).unwrap().revision(),
            Revision::NEWEST_HANDSHAKE
        );
        assert_eq!(facts("{}"), None);
    }

    #[test]
    fn an_introduction_that_is_too_long_is_in_no_id() {
        let with = |len: usize| {
            let name = "\u{e9}\\\"\\\\".repeat(len);
            let params = CLIENTS[1].replace("codex-mcp-client", &name);
            let facts = facts(&params).unwrap();
            let id = facts.seal(&keys(), "")?;
            assert!(id.len() <= MAX_ID_BYTES);
            assert_eq!(SessionFacts::open(&keys(), "", &id).unwrap(), facts);
            Some(id)
        };
        assert!(with(1).is_some() && with(200).is_some());
        assert!(with(400).is_none());
        assert_eq!(
            SessionFacts::open(&keys(), "", &"A".repeat(MAX_ID_BYTES + 1)),
            None
        );
    }

    #[test]
    fn blanks_go_and_strings_stay() {
        assert_eq!(
            without_blanks("{ \"a b\" :\n\t[1 , \"\\\" \\\\\" , {}]}"),
            "{\"a b\":[1,\"\\\" \\\\\",{}]}"
        );
        for text in TEXTS {
            assert_eq!(unpacked(&packed(text)).unwrap(), text);
        }
    }
}
