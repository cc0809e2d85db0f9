//! Decides in which revision a request of JSON-RPC is served, from its envelope and the handshake.

use super::config::Config;
use crate::json::reader;
use crate::mcp::revision::UnreadableId;
use crate::mcp::{Era, ErrorKind, LogLevel, Method, Revision, Side};
use crate::message::{Field, MessageRef};

/// Why a request is not served in any revision.
pub(super) enum Unserved {
    /// It is not answered.
    Silent,
    /// It is answered in this revision, with an error: its kind, a message, and data as JSON.
    Refused(Revision, ErrorKind, &'static str, Option<String>),
}

/// The method, if a revision defines it.
#[inline]
pub(super) fn method_of(message: &MessageRef<'_>) -> Option<Method> {
    let known = message.raw_bytes(Field::Method).and_then(Method::of_token);
    // The name may contain escapes.
    known.or_else(|| Method::parse(&message.method()?))
}

/// The revision in which to serve a request: its own envelope decides, else the handshake (R-ERA-02,
/// R-ERA-03). `negotiated` is the revision of the handshake. Updates the form of an error's id when a
/// frame's id cannot be read.
pub(super) fn revision_of(
    config: &Config,
    negotiated: Option<Revision>,
    message: &MessageRef<'_>,
    method: Option<Method>,
    unreadable: &mut UnreadableId,
) -> Result<Revision, Unserved> {
    if config.side == Side::Client {
        // A client answers pings before the connection is open (R-PNG-01).
        let unsettled = match method {
            Some(Method::Ping) => config.revisions.newest(Era::Handshake),
            _ => None,
        };
        return negotiated.or(unsettled).ok_or(Unserved::Silent);
    }
    let stateless = config.revisions.newest(Era::Stateless);
    if let (Some(asked), Some(newest)) = (message.raw(Field::ProtocolVersion), stateless) {
        *unreadable = newest.rules().unreadable_id;
        return stateless_revision(config, message, asked)
            .map_err(|(kind, why, data)| Unserved::Refused(newest, kind, why, data));
    }
    if let Some(negotiated) = negotiated {
        *unreadable = negotiated.rules().unreadable_id;
        return Ok(negotiated);
    }
    let refused = |kind, why| {
        Err(Unserved::Refused(
            Revision::NEWEST_HANDSHAKE,
            kind,
            why,
            None,
        ))
    };
    match (config.handshake(), method) {
        (Some(newest), Some(Method::Initialize | Method::Ping)) => Ok(newest),
        // R-LIF-15
        (Some(_), _) => refused(
            ErrorKind::InvalidRequest,
            "the connection is not initialized",
        ),
        (None, Some(Method::Initialize)) => {
            // R-ERA-06
            *unreadable = UnreadableId::Omitted;
            let data = format!("{{\"supported\":{}}}", config.revisions.to_json());
            Err(Unserved::Refused(
                Revision::NEWEST,
                ErrorKind::UnsupportedVersion,
                "Unsupported protocol version",
                Some(data),
            ))
        }
        // R-ERR-19
        (None, _) => refused(
            ErrorKind::InvalidParams,
            "protocolVersion is missing in _meta",
        ),
    }
}

/// The revision that the envelope of a stateless request asks for; `asked` is the raw version.
fn stateless_revision(
    config: &Config,
    message: &MessageRef<'_>,
    asked: &str,
) -> Result<Revision, (ErrorKind, &'static str, Option<String>)> {
    let invalid = |why| Err((ErrorKind::InvalidParams, why, None));
    let Some(name) = reader::as_str(asked) else {
        return invalid("protocolVersion must be a string");
    };
    let is_spoken = |r: &Revision| r.era() == Era::Stateless && config.revisions.contains(*r);
    let Some(revision) = Revision::parse(&name).filter(is_spoken) else {
        let supported = config.revisions.to_json();
        let data = format!("{{\"supported\":{supported},\"requested\":{asked}}}");
        let why = "Unsupported protocol version";
        return Err((ErrorKind::UnsupportedVersion, why, Some(data)));
    };
    let capabilities = message.raw(Field::ClientCapabilities);
    if !capabilities.is_some_and(|capabilities| capabilities.starts_with('{')) {
        // R-ERR-14
        return invalid("clientCapabilities is missing in _meta or no object");
    }
    match has_known_level(message) {
        true => Ok(revision),
        false => invalid("unknown log level"),
    }
}

/// Whether the log level in the envelope is a known one; `true` if there is none.
fn has_known_level(message: &MessageRef<'_>) -> bool {
    let known = |raw| reader::as_str(raw).is_some_and(|name| LogLevel::parse(&name).is_some());
    message.raw(Field::LogLevel).is_none_or(known)
}
