//! The state that all connections of one front share.

use std::sync::Arc;
use std::time::Duration;

use super::kept::Kept;
use super::lanes::Lanes;
use super::parts::Parts;
use super::prefix::Kind;
use super::question::Parking;
use crate::mcp::Era;

pub(super) struct Shared {
    /// The servers of the front, at least one.
    pub members: Vec<Member>,
    /// The parts of the first server. What they say of clients holds for all.
    pub parts: Arc<Parts>,
    /// Calls of the stateless era whose clients have a question to answer.
    pub parking: Arc<Parking>,
    /// Connections on which servers have given states to clients.
    pub kept: Arc<Kept>,
    /// How long each of several servers has to add its part to an answer of all.
    pub patience: Duration,
}

/// One of the servers of a front.
pub(super) struct Member {
    pub parts: Arc<Parts>,
    /// The connections to the server that clients without a connection of their own use.
    pub lanes: Arc<Lanes>,
}

impl Member {
    pub fn name(&self) -> &str {
        self.parts.external.name()
    }

    /// Its index among the servers of the front.
    pub fn index(&self) -> usize {
        self.parts.index
    }
}

impl Shared {
    /// The era of all servers, if it is known and the same.
    pub fn era(&self) -> Option<Era> {
        let first = self.parts.era();
        let mut others = self.members.iter().map(|member| member.parts.era());
        first.filter(|_| others.all(|era| era == first))
    }

    /// The server that has what clients call so: the one whose prefix it has, or else the one without a prefix.
    pub fn owner(&self, kind: Kind, outer: &str) -> Option<&Member> {
        let has = |member: &&Member| {
            let prefix = member.parts.prefix.as_ref();
            prefix.is_some_and(|prefix| prefix.inner(kind, outer).is_some())
        };
        self.members.iter().find(has).or_else(|| self.plain())
    }

    /// The server without a prefix.
    pub fn plain(&self) -> Option<&Member> {
        let is_plain = |member: &&Member| member.parts.prefix.is_none();
        self.members.iter().find(is_plain)
    }
}
