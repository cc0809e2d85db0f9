//! An authorization server whose tokens are accepted: its keys, and where it is asked about tokens.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpbolt_oauth::server::{Introspection, Jws, KeyCache, KeyLookup, KeySet};
use serde_json::Value;
use tokio::sync::watch;

use super::fetch::IssuerFetch;
use crate::sync::lock;

/// Where the keys of an issuer are.
#[derive(Debug)]
pub enum KeySource {
    /// At this URL.
    At(String),
    /// Where the metadata of the issuer say.
    Discovered,
    /// Here: the issuer is part of this server.
    #[cfg(feature = "consent-proxy")]
    Own(KeySet),
}

#[derive(Debug)]
pub struct Authority {
    pub issuer: String,
    /// `None` if the issuer is asked about each token.
    keys: Option<(KeySource, Mutex<KeyCache>)>,
    pub introspection: Option<Introspection>,
    /// Tells that a fetch of keys has ended.
    fetched: watch::Sender<()>,
}

impl Authority {
    pub fn new(
        issuer: String,
        keys: Option<KeySource>,
        introspection: Option<Introspection>,
        (refresh, cooldown): (Duration, Duration),
    ) -> Self {
        let keys = keys.map(|source| {
            #[cfg_attr(not(feature = "consent-proxy"), expect(unused_mut))]
            let mut cache = KeyCache::new(refresh, cooldown);
            #[cfg(feature = "consent-proxy")]
            if let KeySource::Own(keys) = &source {
                cache.fetched(Some(keys.clone()), Instant::now());
            }
            (source, Mutex::new(cache))
        });
        Self {
            issuer,
            keys,
            introspection,
            fetched: watch::Sender::new(()),
        }
    }

    /// Whether the issuer's tokens are verified here only if the policy has no verifier of its own.
    pub fn is_discovered(&self) -> bool {
        matches!(self.keys, Some((KeySource::Discovered, _)))
    }

    pub fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Waits for the end of a fetch that is under way when this is called.
    pub fn next_fetch(&self) -> watch::Receiver<()> {
        self.fetched.subscribe()
    }

    pub fn find(&self, token: &Jws<'_>, failed: Option<&Arc<KeySet>>, begun: Instant) -> KeyLookup {
        match &self.keys {
            Some((_, keys)) => lock(keys).find(token, failed, begun, Instant::now()),
            None => KeyLookup::Unknown,
        }
    }

    pub fn is_current(&self, set: &Arc<KeySet>) -> bool {
        let keys = self.keys.as_ref();
        keys.is_some_and(|(_, keys)| lock(keys).is_current(set))
    }

    pub fn begin_refresh(&self) -> bool {
        let keys = self.keys.as_ref();
        keys.is_some_and(|(_, keys)| lock(keys).begin_refresh(Instant::now()))
    }

    /// Fetches the keys. Returns whether a key is gone.
    pub async fn fetch(&self, fetcher: &dyn IssuerFetch) -> bool {
        let Some((source, keys)) = &self.keys else {
            return false;
        };
        let set = self.key_set(source, fetcher).await.ok();
        lock(keys).fetched(set, Instant::now())
    }

    /// Ends a fetch that could not begin.
    pub fn give_up(&self) {
        if let Some((_, keys)) = &self.keys {
            lock(keys).fetched(None, Instant::now());
        }
        self.end_fetch();
    }

    /// Wakes what waits for the fetch.
    pub fn end_fetch(&self) {
        self.fetched.send_replace(());
    }

    async fn key_set(
        &self,
        source: &KeySource,
        fetcher: &dyn IssuerFetch,
    ) -> Result<KeySet, String> {
        let url = match source {
            KeySource::At(url) => url.clone(),
            KeySource::Discovered => self.discovered(fetcher).await?,
            #[cfg(feature = "consent-proxy")]
            KeySource::Own(keys) => return Ok(keys.clone()),
        };
        let document = fetcher.get(&url).await?;
        Ok(KeySet::parse(&document)?)
    }

    /// The URL of the keys, from the issuer's metadata at the places of RFC 8414 and OpenID Connect.
    async fn discovered(&self, fetcher: &dyn IssuerFetch) -> Result<String, String> {
        let issuer = self.issuer.trim_end_matches('/');
        let path_at = issuer
            .find("://")
            .and_then(|at| issuer[at + 3..].find('/').map(|it| at + 3 + it));
        let (origin, path) = issuer.split_at(path_at.unwrap_or(issuer.len()));
        let mut why = String::new();
        for url in [
            format!("{origin}/.well-known/oauth-authorization-server{path}"),
            format!("{origin}/.well-known/openid-configuration{path}"),
            format!("{issuer}/.well-known/openid-configuration"),
        ] {
            match fetcher
                .get(&url)
                .await
                .and_then(|document| self.keys_in(&document))
            {
                Ok(url) => return Ok(url),
                Err(new) => why = new,
            }
        }
        Err(why)
    }

    fn keys_in(&self, metadata: &[u8]) -> Result<String, String> {
        let metadata: Value =
            serde_json::from_slice(metadata).map_err(|_| "the metadata is not JSON")?;
        if metadata["issuer"] != *self.issuer {
            return Err("the metadata is that of another issuer".into());
        }
        let url = metadata["jwks_uri"].as_str();
        Ok(url
            .ok_or("the metadata names no keys (jwks_uri)")?
            .to_owned())
    }
}
