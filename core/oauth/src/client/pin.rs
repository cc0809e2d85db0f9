//! Which authorization server gets the secret of a client, unless the program has named it: the first one that
//! accepts it, and then no other, whatever MCP servers name (R-AUC-13).

use serde::{Deserialize, Serialize};

use super::credentials::{Origin, document};
use super::error::{LoginError, LoginStage, quoted};
use super::flow::{Flow, of_store};
use super::options::LoginOptions;
use crate::store::KeyLock;

/// The authorization server that has accepted the secret of a client id.
#[derive(Serialize, Deserialize)]
struct Pin {
    version: u32,
    issuer: String,
}

/// The first use of a secret. Other logins wait for its outcome before they use the secret.
pub(super) struct FirstUse {
    key: String,
    issuer: String,
    _lock: KeyLock,
}

impl Flow {
    /// The key of the pin of the program's client; `None` if it has no secret, or the program has named the
    /// authorization server.
    fn pin_key(&self) -> Option<String> {
        match &*self.options {
            LoginOptions {
                client_id: Some(client_id),
                client_secret: Some(_),
                issuer: None,
                ..
            } => Some(format!("client {client_id}")),
            _ => None,
        }
    }

    /// Whether the secret is that authorization server's already, or needs no pin. Fails if it is another's.
    pub(super) async fn is_pinned(&self, issuer: &str) -> Result<bool, LoginError> {
        let Some(key) = self.pin_key() else {
            return Ok(true);
        };
        let pin = document::<Pin>(&*self.store, &key).await;
        let Some(pin) = pin.map_err(of_store)? else {
            return Ok(false);
        };
        if pin.issuer == issuer {
            return Ok(true);
        }
        let (first, now) = (quoted(&pin.issuer), quoted(issuer));
        let why = format!(
            "the secret of client_id is that of {first}, and the server wants tokens of {now}, which does not get it; if the client is registered there, give that issuer"
        );
        Err(LoginError::new(LoginStage::Registration, why))
    }

    /// Makes sure that the client's secret may be sent to the authorization server of `origin`. If it has never
    /// been accepted anywhere, waits until no other login tries it.
    pub(super) async fn entrust(&self, origin: &Origin) -> Result<(), LoginError> {
        let is_own = self.options.client_id.as_ref() == Some(&origin.client.client_id);
        let Some(key) = self.pin_key().filter(|_| is_own) else {
            return Ok(());
        };
        if self.is_trying(&origin.issuer) || self.is_pinned(&origin.issuer).await? {
            return Ok(());
        }
        let lock = self.store.lock(&key).await.map_err(of_store)?;
        if !self.is_pinned(&origin.issuer).await? {
            *self.first_use() = Some(FirstUse {
                key,
                issuer: origin.issuer.clone(),
                _lock: lock,
            });
        }
        Ok(())
    }

    /// Whether this login is the first use of the secret at that authorization server. A first use at another one
    /// is over.
    fn is_trying(&self, issuer: &str) -> bool {
        let mut first = self.first_use();
        *first = first.take().filter(|first| first.issuer == issuer);
        first.is_some()
    }

    /// Keeps that the secret was accepted, if this was its first use.
    pub(super) async fn accepted(&self) -> Result<(), LoginError> {
        let first = self.first_use().take();
        let Some(first) = first else { return Ok(()) };
        let pin = Pin {
            version: Origin::version(),
            issuer: first.issuer.clone(),
        };
        self.save(&first.key, &pin).await
    }
}
