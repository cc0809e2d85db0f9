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
        let of_machine = failed(LoginStage::Revocation);
        let agent = Agent::new(url, http, proxies, &self.0);
        let runtime = runtime().map_err(of_machine)?;
        let logged_out = runtime.spawn(async move { agent.log_out().await }).await;
        logged_out.map_err(|error| of_machine(io::Error::other(error)))?
    }
}

fn failed(stage: LoginStage) -> impl Fn(io::Error) -> LoginError + Copy {
    move |error| LoginError::new(stage, error.to_string())
}

impl Agent {
    async fn log_out(&self) -> Result<LoggedOut, LoginError> {
        let Some(held) = self.stored(self.taken()).await? else {
            return Ok(LoggedOut::NotLoggedIn);
        };
        if held.revocation_endpoint().is_none() {
            return Ok(LoggedOut::Forgotten);
        }
        self.revoke(held).await?;
        Ok(LoggedOut::Revoked)
    }

    /// Takes the credentials out of the store, unless they could not be revoked then.
    async fn taken(&self) -> Result<Option<Credentials>, LoginError> {
        // What cannot be read cannot be revoked, and goes all the same.
        if let Ok(Some(held)) = Credentials::load(&*self.store, self.url()).await
            && held.revocation_endpoint().is_some()
            && held.needs_signing_key()
            && !self.has_signing_key()
        {
            let why = "this client signs its requests; give its signing key, without which the tokens cannot be ended";
            return Err(LoginError::new(LoginStage::Options, why));
        }
        let held = Credentials::forget(&*self.store, self.url()).await;
        held.map_err(failed(LoginStage::Store))
    }
}
