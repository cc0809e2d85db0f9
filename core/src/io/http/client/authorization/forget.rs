//! Forgets and revokes tokens.

use std::io;
use std::sync::Arc;

use mcpbolt_oauth::client::{LoginError, LoginStage, ServerCredentials};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use url::Url;

use super::agent::Agent;
use super::{Authorization, ServerAccess};
use crate::io::http::client::connections::ConnectionSettings;
use crate::io::runtime::{awaited, runtime};
use crate::sync::lock;

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
    /// Forgets the credentials for the server at `url`, and revokes them on connections of that
    /// kind.
    pub(in crate::io::http::client) async fn forget(
        &self,
        url: Url,
        http: ConnectionSettings,
    ) -> Result<LoggedOut, LoginError> {
        let running = lock(&self.0.servers).get(url.as_str()).cloned();
        let agent = Arc::new(Agent::new(url, http, &self.0));
        let runtime = runtime().map_err(failed(LoginStage::Revocation))?;
        ended(runtime.spawn(agent.log_out(running))).await
    }
}

async fn ended<T>(task: JoinHandle<Result<T, LoginError>>) -> Result<T, LoginError> {
    let of_task = |error| failed(LoginStage::Revocation)(io::Error::other(error));
    task.await.map_err(of_task)?
}

fn failed(stage: LoginStage) -> impl Fn(io::Error) -> LoginError + Copy {
    move |error| LoginError::new(stage, error.to_string())
}

impl Agent {
    /// `running` is what the clients of this process use.
    async fn log_out(
        self: Arc<Self>,
        running: Option<Arc<ServerAccess>>,
    ) -> Result<LoggedOut, LoginError> {
        let (told, taken) = oneshot::channel();
        let agent = self.clone();
        // If the store takes longer than the caller waits, this goes on: what has left the store is revoked.
        let work = tokio::spawn(awaited(async move {
            let held = agent.taken().await;
            if let (Ok(_), Some(running)) = (&held, running) {
                running.forget();
            }
            let _ = told.send(());
            agent.end(held?).await
        }));
        self.stored(async { Ok(taken.await) }).await?.ok();
        ended(work).await
    }

    async fn end(&self, held: Option<ServerCredentials>) -> Result<LoggedOut, LoginError> {
        let Some(held) = held else {
            return Ok(LoggedOut::NotLoggedIn);
        };
        if held.revocation_endpoint().is_none() {
            return Ok(LoggedOut::Forgotten);
        }
        let revoked = self.revoke(held).await;
        let still = "the login is forgotten here, but its tokens stay valid until they end";
        revoked.map_err(|error| error.and(still))?;
        Ok(LoggedOut::Revoked)
    }

    /// Takes the credentials out of the store, unless they could not be revoked then.
    async fn taken(&self) -> Result<Option<ServerCredentials>, LoginError> {
        // What cannot be read cannot be revoked, and goes all the same.
        if let Ok(Some(held)) = ServerCredentials::load(&*self.store, self.url()).await
            && held.revocation_endpoint().is_some()
            && held.needs_signing_key()
            && !self.has_signing_key()
        {
            let why = "this client signs its requests; give its signing key, without which the tokens cannot be ended";
            return Err(LoginError::new(LoginStage::Options, why));
        }
        let held = ServerCredentials::forget(&*self.store, self.url()).await;
        held.map_err(failed(LoginStage::Store))
    }
}
