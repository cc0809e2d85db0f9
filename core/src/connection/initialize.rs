//! The server's side of the opening: what `initialize` agrees on, and what its answer and that of
//! `server/discover` say (R-LIF-04, R-LIF-10).

use super::config::Config;
use super::options::PeerInfo;
use super::result_writer::ResultWriter;
use crate::json::{reader, string};
use crate::limits::MAX_INTRODUCTION_BYTES;
use crate::mcp::{Era, ErrorKind, Revision, Revisions};

/// The terms that an `initialize` agrees on.
pub(super) struct Introduction {
    pub revision: Revision,
    pub peer: PeerInfo,
    is_named: bool,
}

/// Why an `initialize` is refused: the kind of error, a message, and data as JSON.
pub(super) type Refused = (ErrorKind, &'static str, Option<String>);

/// Reads the params of an `initialize`. `is_open` says whether there was one before.
pub(super) fn negotiate(
    config: &Config,
    is_open: bool,
    params: &str,
) -> Result<Introduction, Refused> {
    let member = |name| reader::find(params, name);
    let overlay = config.profile.overlay();
    if is_open {
        // R-LIF-14
        return Err((ErrorKind::InvalidRequest, "already initialized", None));
    }
    let Some(version) = member("protocolVersion").and_then(reader::as_str) else {
        let why = "protocolVersion is missing";
        return Err((ErrorKind::InvalidParams, why, None));
    };
    let is_object = |name| member(name).is_some_and(|value| value.starts_with('{'));
    let is_named = is_object("clientInfo");
    let is_lenient = config.lenient || overlay.lenient;
    if !(is_lenient || is_object("capabilities") && is_named) {
        let why = "capabilities and clientInfo must be objects";
        return Err((ErrorKind::InvalidParams, why, None));
    }
    let spoken = config.spoken(&version);
    if spoken.is_none() && overlay.refuses_versions {
        // R-ERR-20
        let all = config.revisions.iter();
        let supported: Revisions = all.filter(|one| one.era() == Era::Handshake).collect();
        let (supported, requested) = (supported.to_json(), member("protocolVersion"));
        let requested = requested.unwrap_or("null");
        let data = format!("{{\"supported\":{supported},\"requested\":{requested}}}");
        let why = "Unsupported protocol version";
        return Err((ErrorKind::UnsupportedVersion, why, Some(data)));
    }
    Ok(Introduction {
        revision: spoken.unwrap_or(fallback(config)),
        peer: PeerInfo {
            implementation: what_fits(member("clientInfo").unwrap_or_default()),
            capabilities: what_fits(member("capabilities").unwrap_or("{}")),
            instructions: None,
        },
        is_named,
    })
}

/// The revision of an answer to an `initialize` that names no spoken one.
pub(super) fn fallback(config: &Config) -> Revision {
    config.handshake().unwrap_or(Revision::NEWEST_HANDSHAKE)
}

impl Introduction {
    /// Bytes kept of how the peer described itself.
    pub fn bytes(&self) -> usize {
        self.peer.implementation.len() + self.peer.capabilities.len()
    }

    /// Writes the result of the `initialize`.
    pub fn write(&self, config: &Config, result: &mut ResultWriter<'_>) {
        result.with("protocolVersion", |out| {
            string::append(out, self.revision.name())
        });
        result.raw("capabilities", config.capabilities(self.revision));
        // R-LIF-08: under a lenient profile, a client that sent no clientInfo gets no serverInfo.
        if self.is_named || !config.profile.overlay().lenient {
            result.raw("serverInfo", &config.implementation);
        }
        if let Some(instructions) = &config.instructions {
            result.string("instructions", instructions);
        }
    }
}

/// Writes the result of `server/discover` (R-DSC-03, R-DSC-04).
pub(super) fn discovered(config: &Config, revision: Revision, result: &mut ResultWriter<'_>) {
    result.raw("supportedVersions", &config.revisions.to_json());
    result.raw("capabilities", config.capabilities(revision));
    if let Some(instructions) = &config.instructions {
        result.string("instructions", instructions);
    }
    result.raw("ttlMs", "0");
    result.raw("cacheScope", "\"private\"");
}

/// Returns the part of `capabilities` or `clientInfo`, a JSON object, that is kept: of a long object the
/// members that fit, in their order.
fn what_fits(object: &str) -> Box<str> {
    if object.len() <= MAX_INTRODUCTION_BYTES {
        return object.into();
    }
    let mut kept = String::from("{");
    for (key, value) in reader::members(object) {
        // Two quotes, a colon, a comma and the closing brace.
        if kept.len() + key.raw().len() + value.len() + 5 > MAX_INTRODUCTION_BYTES {
            continue;
        }
        if kept.len() > 1 {
            kept.push(',');
        }
        kept.push('"');
        kept.push_str(key.raw());
        kept.push_str("\":");
        kept.push_str(value);
    }
    kept.push('}');
    kept.into()
}
