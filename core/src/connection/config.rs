//! What one side brings to a connection.

use std::sync::Arc;

#[cfg(feature = "server")]
use super::actions::references::References;
use super::budget::Budget;
use super::implementation::Implementation;
use super::trace::Trace;
use crate::limits::Limits;
use crate::mcp::{Era, Profile, Revision, Revisions, Side};

/// How a client opens a pipe or socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opening {
    /// Ask `server/discover` first; on any other answer than a stateless one, or none in
    /// [`Limits::probe_timeout`], fall back to `initialize` (R-ERA-07, R-ERA-08).
    #[default]
    Probe,
    /// `initialize` first, for servers that do not survive an unknown first request (R-ERA-12).
    Handshake,
    /// Take it for granted that the server speaks the newest stateless revision (R-DSC-02).
    Stateless,
    /// Speak the [action dialect](crate::action), which needs no opening: nothing but
    /// [`Handle::act`](super::Handle::act) is of use then.
    Actions,
}

impl Opening {
    /// One of those that open MCP, by its name in lower case.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "probe" => Self::Probe,
            "handshake" => Self::Handshake,
            "stateless" => Self::Stateless,
            _ => return None,
        })
    }
}

/// What one side brings to a connection. Shared by its connections.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which side this is.
    pub side: Side,
    /// Name, version and more of this program.
    pub implementation: Implementation,
    /// Capabilities: a JSON object for each revision, in the order of [`Revision::ALL`].
    pub capabilities: [Box<str>; 5],
    /// What the server tells the model about itself.
    pub instructions: Option<Box<str>>,
    /// The revisions this side speaks.
    pub revisions: Revisions,
    /// How a client opens.
    pub opening: Opening,
    /// Accept an `initialize` without `capabilities` or `clientInfo`, and a result without
    /// `serverInfo` (R-LIF-08).
    pub lenient: bool,
    /// Take a string id of digits in an answer for the integer that was sent.
    pub lenient_ids: bool,
    /// Answer a cancelled request once, with error -32800, as peers of one dialect expect; no
    /// official revision answers it at all (R-CAN-02, R-ERR-27).
    pub answer_cancelled: bool,
    /// A server also answers requests of the [action dialect](crate::action), beside any revision
    /// and on the same streams (R-ACT-41). On by default.
    pub actions: bool,
    /// Where data of actions are kept that are too long for an answer; none by default.
    #[cfg(feature = "server")]
    pub(crate) references: Option<Arc<References>>,
    /// Whose reading of the protocol this side speaks, up to 2025-11-25.
    pub profile: Profile,
    /// Sees every frame, with secrets masked; none by default.
    pub trace: Option<Trace>,
    /// The bounds of each connection.
    pub limits: Limits,
    /// What all connections of this configuration and its clones may hold together.
    pub budget: Arc<Budget>,
}

impl Config {
    /// A side with that name and version, no capabilities and every revision.
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
            opening: Opening::default(),
            lenient: false,
            lenient_ids: false,
            answer_cancelled: false,
            actions: true,
            #[cfg(feature = "server")]
            references: None,
            profile: Profile::Official,
            trace: None,
            limits: Limits::STDIO,
            budget: Arc::default(),
        }
    }

    /// The revision of the handshake that this side asks for, or falls back to; `None` when it
    /// speaks none that has one.
    pub(crate) fn handshake(&self) -> Option<Revision> {
        let preferred = self.profile.overlay().preferred;
        let spoken = preferred.filter(|preferred| self.revisions.contains(*preferred));
        spoken.or_else(|| self.revisions.newest(Era::Handshake))
    }

    /// The capabilities announced in that revision, a JSON object.
    pub fn capabilities(&self, revision: Revision) -> &str {
        &self.capabilities[revision as usize]
    }
}
