//! The store by which processes of a server go on with each other's sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use mcpbolt::client::block_on;
use mcpbolt::io::http::SharedSessions;
use mcpbolt::io::{Address, RedisOptions, RedisStore, read_store_keys};
use mcpbolt::store::StoreKeys;
use tracing::warn;

use crate::reference::resolve;

/// Which store, and the keys of what it keeps.
#[derive(clap::Args)]
pub struct Store {
    /// Share sessions, their streams and the limits of a policy with all processes that have the same store: a Redis or Valkey at
    /// redis://HOST:PORT/DATABASE, rediss://… for TLS, redis+unix:///PATH, or a cluster of them at
    /// redis+cluster://HOST:PORT,HOST:PORT (rediss+cluster://… for TLS), which names some of its nodes
    ///
    /// A password is given as ${env:NAME} or ${file:PATH}, as in 'redis://:${env:PASSWORD}@HOST:6379/0'; percent-encoded
    /// where it has characters of an address.
    #[arg(
        long = "store",
        value_name = "URL",
        requires = "keys_file",
        help_heading = "Processes"
    )]
    url: Option<String>,
    /// The file with the keys of the store, the same for all processes: 64 hexadecimal digits on each line
    ///
    /// The first key names what is kept, the second one seals it, and further ones open what they have sealed. A file that
    /// other users can read is refused. To make one: openssl rand -hex 64 | fold -w 64 | install -m 600 /dev/stdin store.keys
    #[arg(
        id = "keys_file",
        long = "store-keys",
        value_name = "FILE",
        requires = "url",
        help_heading = "Processes"
    )]
    keys: Option<PathBuf>,
    /// The prefix of all names in the store; give servers that share no sessions different ones
    #[arg(
        long = "store-prefix",
        value_name = "PREFIX",
        default_value = "mcpbolt:",
        requires = "url",
        help_heading = "Processes"
    )]
    prefix: String,
    /// A file of certificate authorities (PEM) to trust for a store at rediss://, in place of the system's
    #[arg(
        long = "store-ca",
        value_name = "FILE",
        requires = "url",
        help_heading = "Processes"
    )]
    certificates: Option<PathBuf>,
}

impl Store {
    /// Checks the address of the store and its keys, without asking the store.
    ///
    /// # Errors
    /// If they are not valid, or there are no sessions at `address`.
    pub fn check(&self, address: &Address) -> Result<()> {
        let is_used = self.open()?.is_some();
        ensure!(
            !is_used || matches!(address, Address::Http(_)),
            "--store shares sessions of HTTP, and {address} has none; serve at an address such as http://127.0.0.1:8000/mcp"
        );
        Ok(())
    }

    /// How sessions are shared, if they are. Waits for an answer of the store for as long as a verb may take, and goes on
    /// without one: sessions do.
    ///
    /// # Errors
    /// As those of [`check`](Self::check).
    pub fn sessions(&self) -> Result<Option<SharedSessions>> {
        let Some((store, keys)) = self.open()? else {
            return Ok(None);
        };
        if let Err(why) = block_on(store.ping()) {
            warn!(%why, "sessions are not shared until the store answers");
        }
        Ok(Some(SharedSessions {
            scope: self.prefix.as_str().into(),
            ..SharedSessions::new(Arc::new(store), Arc::new(keys))
        }))
    }

    fn open(&self) -> Result<Option<(RedisStore, StoreKeys)>> {
        let (Some(url), Some(file)) = (&self.url, &self.keys) else {
            return Ok(None);
        };
        let keys = read_store_keys(file);
        let keys = keys.with_context(|| format!("--store-keys {}", file.display()))?;
        let url = resolve(url.clone(), Path::new("."));
        let url = url.map_err(|why| anyhow!("--store: {why}"))?;
        let certificates = self.certificates.iter().map(|file| {
            std::fs::read(file).with_context(|| format!("--store-ca {}", file.display()))
        });
        let options = RedisOptions {
            prefix: self.prefix.clone(),
            root_certificates: certificates.collect::<Result<_>>()?,
            ..RedisOptions::default()
        };
        let store = RedisStore::open(url.value(), &options).context("--store")?;
        Ok(Some((store, keys)))
    }
}
