//! Forgets and revokes tokens.

use std::collections::HashSet;
use std::io;

use mcpbolt_oauth::client::{Credentials, LoginError, LoginStage};
use reqwest::{ClientBuilder, Url};

use super::Authorization;
use super::agent::Agent;
use crate::io::runtime::runtime;

/// What a logout found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedOut {
    /// There were no credentials.
    NotLoggedIn,
    /// The credentials are forgotten, and the authorization server has ended the tokens.
    Revoked,
    /// The credentials are forgotten. The authorization server ends no tokens early, so the access token
    /// stays valid until its time is over.
    Forgotten,
}

impl Authorization {
    /// Forgets the credentials for the server at `url`, and revokes them with an HTTP client made with
    /// `http`, through these proxies.
    pub(in crate::io::http::client) async fn forget(
        &self,
        url: Url,
        http: ClientBuilder,
        proxies: HashSet<String>,
    ) -> Result<LoggedOut, LoginError> {
        let failed = |stage| move |error: io::Error| LoginError::new(stage, error.to_string());
        let held = Credentials::forget(&*self.0.store, url.as_str()).await;
        let Some(held) = held.map_err(failed(LoginStage::Store))? else {
            return Ok(LoggedOut::NotLoggedIn);
        };
        if held.revocation_endpoint().is_none() {
            return Ok(LoggedOut::Forgotten);
        }
        let agent = Agent::new(url, http, proxies, &self.0);
        let of_machine = failed(LoginStage::Revocation);
        let runtime = runtime().map_err(of_machine)?;
        let revoked = runtime.spawn(async move { agent.revoke(held).await }).await;
        revoked.map_err(|error| of_machine(io::Error::other(error)))??;
        Ok(LoggedOut::Revoked)
    }
}
