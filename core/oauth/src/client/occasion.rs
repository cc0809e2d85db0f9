//! Why a login begins.

use super::credentials::ServerCredentials;
use crate::challenge::Challenge;

/// Why a login begins: what an MCP server answered, or that the access token has ended.
#[derive(Clone, Debug)]
pub struct Occasion {
    /// The URL of the MCP server.
    pub url: String,
    /// The status of its answer; 0 if there is none.
    pub status: u16,
    /// The challenges of its answer.
    pub challenges: Vec<Challenge>,
    /// The credentials that were sent, or that have ended.
    pub held: Option<ServerCredentials>,
    /// Whether `held` has just been refreshed, so that refreshing it again helps nothing.
    pub is_refreshed: bool,
}

impl Occasion {
    /// A login before anything was asked; or, with credentials, a refresh that begins no login.
    pub fn new(url: impl Into<String>, held: Option<ServerCredentials>) -> Self {
        Self {
            url: url.into(),
            status: 0,
            challenges: Vec::new(),
            held,
            is_refreshed: false,
        }
    }

    /// Whether the token is valid, and its scopes do not suffice (R-AUC-16).
    pub fn is_step_up(&self) -> bool {
        self.status == 403 && self.parameter("error") == Some("insufficient_scope")
    }

    /// A parameter of the challenges for tokens.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut tokens = self
            .challenges
            .iter()
            .filter(|it| it.is("bearer") || it.is("dpop"));
        tokens.find_map(|challenge| challenge.get(name))
    }
}
