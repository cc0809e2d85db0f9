//! Which clients share a connection to the server.

use super::external::Isolation;

/// The clients that a server of the handshake era may take for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LaneKey {
    pub principal: Option<Box<str>>,
    pub capabilities: Box<str>,
    /// Whether it is for sessions that need no connection of their own.
    pub is_lent: bool,
}

impl LaneKey {
    /// The key of the connection that a client of the handshake era shares with others; `None` if it has one of its own.
    pub fn of_session(
        isolation: Isolation,
        principal: Option<Box<str>>,
        capabilities: &str,
    ) -> Option<Self> {
        match isolation {
            Isolation::Session => None,
            Isolation::Principal => Some(Self {
                principal: Some(principal?),
                capabilities: capabilities.into(),
                is_lent: false,
            }),
            Isolation::Shared => Some(Self::shared()),
        }
    }

    /// The key for clients that are told apart no further than the server's isolation demands.
    pub fn within(self, isolation: Isolation) -> Self {
        match isolation {
            Isolation::Shared => Self::shared(),
            _ => self,
        }
    }

    /// That of sessions of the handshake era that need no connection of their own.
    pub fn lent() -> Self {
        Self {
            is_lent: true,
            ..Self::shared()
        }
    }

    fn shared() -> Self {
        Self {
            principal: None,
            capabilities: "{}".into(),
            is_lent: false,
        }
    }
}
