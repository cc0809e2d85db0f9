//! The configuration of one side of a connection.

use std::sync::Arc;

#[cfg(feature = "server")]
use super::actions::references::References;
use super::budget::Budget;
use super::implementation::Implementation;
use super::observer::Observer;
use super::trace::Trace;
use crate::limits::Limits;
use crate::mcp::{Era, Profile, Revision, Revisions, Side};

/// How a client opens a pipe or socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpeningMode {
    /// Send `server/discover` first. Fall back to `initialize` if the answer names no common stateless
    /// revision, or if none comes within [`Limits::probe_timeout`] (R-ERA-07, R-ERA-08).
    #[default]
    Probe,
    /// Send `initialize` first, for servers that do not survive an unknown first request (R-ERA-12).
    Handshake,
    /// Assume without asking that the server speaks the newest stateless revision (R-DSC-02).
    Stateless,
    /// Speak the [action dialect](crate::action), which has no opening. Send requests with
    /// [`Handle::act`](super::Handle::act); nothing else is of use on such a connection.
    Actions,
}

impl OpeningMode {
    /// Parses `probe`, `handshake` or `stateless`; `None` for any other name, `actions` included.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "probe" => Self::Probe,
            "handshake" => Self::Handshake,
            "stateless" => Self::Stateless,
            _ => return None,
        })
    }
}

/// The configuration of one side. All connections made from it share it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The side of the connection: client or server.
    pub side: Side,
    /// Name, version and other details of this program.
    pub implementation: Implementation,
    /// Capabilities: one JSON object per revision, in the order of [`Revision::ALL`].
    pub capabilities: [Box<str>; Revision::COUNT],
    /// The server's instructions for the model.
    pub instructions: Option<Box<str>>,
    /// The revisions this side speaks.
    pub revisions: Revisions,
    /// How a client opens.
    pub opening: OpeningMode,
    /// Ask a server that refuses `initialize`, whatever its error says, by `server/discover` on the same connection.
    pub(crate) tries_both_eras: bool,
    /// Accept an `initialize` without `capabilities` or `clientInfo`, and a result without
    /// `serverInfo` (R-LIF-08).
    pub lenient: bool,
    /// Accept an answer whose id is a string of digits in place of the integer that was sent.
    pub lenient_ids: bool,
    /// Answer a cancelled request once, with error -32800. Peers of one profile expect that; no
    /// official revision answers a cancelled request (R-CAN-02, R-ERR-27).
    pub answer_cancelled: bool,
    /// Whether a server also answers requests of the [action dialect](crate::action), next to any
    /// revision and on the same streams (R-ACT-41). Off by default.
    pub actions: bool,
    /// Stores data of action answers that are too long to send at once; none by default.
    #[cfg(feature = "server")]
    pub(crate) references: Option<Arc<References>>,
    /// The variant of the protocol that this side follows, in revisions up to 2025-11-25.
    pub profile: Profile,
    /// Receives every frame, with secrets masked; none by default.
    pub trace: Option<Trace>,
    /// Is told of requests and sessions, for metrics and traces; none by default.
    pub observer: Option<Arc<dyn Observer>>,
    /// The limits of each connection.
    pub limits: Limits,
    /// The limits of all connections of this configuration and its clones together.
    pub budget: Arc<Budget>,
}

impl Config {
    /// Creates a configuration with no capabilities, every revision and the limits of
    /// [`Limits::STDIO`].
    pub fn new(side: Side, name: &str, version: &str) -> Self {
        let mut implementation = Vec::new();
        implementation.extend_from_slice(b"{\"name\":");
        crate::json::string::append(&mut implementation, name);
        implementation.extend_from_slice(b",\"version\":");
        crate::json::string::append(&mut implementation, version);
        implementation.push(b'}');
        Self {
            side,
            implementation: (&*String::from_utf8_lossy(&implementation)).into(),
            capabilities: std::array::from_fn(|_| "{}".into()),
            instructions: None,
            revisions: Revisions::ALL,
            opening: OpeningMode::default(),
            tries_both_eras: false,
            lenient: false,
            lenient_ids: false,
            answer_cancelled: false,
            actions: false,
            #[cfg(feature = "server")]
            references: None,
            profile: Profile::Official,
            trace: None,
            observer: None,
            limits: Limits::STDIO,
            budget: Arc::default(),
        }
    }

    /// The handshake revision that this side asks for or falls back to: the profile's preferred one if
    /// this side speaks it, else the newest. `None` if this side speaks no handshake revision.
    pub(crate) fn handshake(&self) -> Option<Revision> {
        let preferred = self.profile.overlay().preferred;
        let spoken = preferred.filter(|preferred| self.revisions.contains(*preferred));
        spoken.or_else(|| self.revisions.newest(Era::Handshake))
    }

    /// The handshake revision of that name, if this side speaks it.
    pub(crate) fn spoken(&self, name: &str) -> Option<Revision> {
        let revision = Revision::parse(name)?;
        let is_spoken = revision.era() == Era::Handshake && self.revisions.contains(revision);
        is_spoken.then_some(revision)
    }

    /// The capabilities announced in `revision`, a JSON object.
    pub fn capabilities(&self, revision: Revision) -> &str {
        &self.capabilities[revision as usize]
    }
}
