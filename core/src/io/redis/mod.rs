//! A shared store on a server of Redis or Valkey.

mod connection;
mod failure;
mod link;
mod options;
mod scripts;
mod verbs;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redis::RedisResult;
use tokio::time::Instant;

use self::connection::StoreConnection;
use self::link::StoreLink;
pub use self::options::RedisOptions;
use crate::io::runtime::runtime;
use crate::store::{StoreError, StoreFault};

/// A store on a server of Redis (6.2 or later) or Valkey, alone or with replicas, or on a cluster of them, that processes on any number
/// of machines share.
///
/// Each process has one connection (to each node of a cluster), on which all its verbs are in flight at once, and each verb is one command or one
/// script: one round trip. The server's time counts. Clones share the connection.
///
/// Names and contents are readable by everybody who can read the database, unless a
/// [`SealedStore`](crate::store::SealedStore) stands above.
///
/// # What the server needs
///
/// - `maxmemory-policy noeviction`: with another policy it drops state that still counts, such as marks against
///   replays.
/// - Persistence as the state deserves. What the server acknowledges and then loses, in a crash or because a
///   replica took its place, is lost: with `appendfsync everysec` up to a second.
/// - A user with the rights `+@read +@write +@pubsub +@scripting +@connection +time +ping` on keys and channels that
///   begin with the prefix; on a cluster also `+cluster|slots +asking`.
///
/// # On a cluster
///
/// The address names some nodes, of which one has to be there for each new connection: `redis+cluster://A:6379,B:6379`. The
/// keys of one name are in one slot, so a verb still is one step of one node. What is published reaches all nodes. A verb
/// whose slot has moved is sent again, since it was not carried out; no other verb is. A new connection is made to all nodes when one of
/// them breaks off, with the nodes and slots as they are by then. While no replica has taken the place of a node, verbs on its slots
/// fail, or all do, as `cluster-require-full-coverage` says. Each name has the time of its node: where slots move, leases and
/// rates are as exact as the clocks of the nodes agree.
///
/// # While the server is away
///
/// A lost connection is opened again by itself, after at most 50 ms and then less and less often, at least once a second; so is
/// one whose server has become a replica, since the address may lead to another server by then. Verbs in
/// flight fail with [`StoreFault::Broken`]. The next ones wait for the first attempt; when it has failed, all fail at
/// once with [`StoreFault::Unavailable`] until an attempt succeeds. After [`RedisOptions::timeout`] any verb fails.
///
/// # Example
///
/// ```no_run
/// use std::sync::Arc;
/// use mcpbolt::io::{RedisOptions, RedisStore};
/// use mcpbolt::store::{SealedStore, SharedStore, StoreKeys};
///
/// # async fn example(names: [u8; 32], sealing: [u8; 32]) -> Result<(), mcpbolt::store::StoreError> {
/// let options = RedisOptions {
///     password: std::env::var("STORE_PASSWORD").ok(),
///     ..RedisOptions::default()
/// };
/// let store = RedisStore::open("rediss://mcp@store.example:6379/0", &options)?;
/// store.ping().await?;
/// let keys = StoreKeys::new(names, sealing);
/// let store: Arc<dyn SharedStore> = Arc::new(SealedStore::new(Arc::new(store), Arc::new(keys)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<StoreLink>,
    server: Arc<str>,
    prefix: Arc<str>,
    timeout: Duration,
}

impl RedisStore {
    /// Uses the server at a URL: `redis://USER:PASSWORD@HOST:PORT/DATABASE`, `rediss://…` for TLS or
    /// `redis+unix:///PATH`; `valkey` may stand for `redis`. A cluster is at `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT`, or `rediss+cluster://…`
    /// for TLS. Returns at once; a thread of this crate connects.
    ///
    /// # Errors
    /// [`StoreFault::Misuse`] if the URL or an option is not valid. A server that cannot be reached is no error here: see
    /// [`ping`](Self::ping).
    pub fn open(url: &str, options: &RedisOptions) -> Result<Self, StoreError> {
        let (client, server) = options::server(url, options)?;
        let entered = runtime().map_err(|error| no_thread(&error))?.enter();
        let link = StoreLink::begin(client, &server, options);
        drop(entered);
        Ok(Self {
            link: Arc::new(link),
            server: server.into(),
            prefix: options.prefix.as_str().into(),
            timeout: options.timeout,
        })
    }

    /// Completes when the server has answered.
    ///
    /// # Errors
    /// As those of any verb.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let ping = async |mut connection| redis::cmd("PING").exec_async(&mut connection).await;
        self.run(ping).await
    }

    /// The key that holds a form of state: `PREFIX` `FORM` `{NAME}`. The keys of one name are in one slot of a cluster.
    fn key(&self, form: &str, name: &str) -> String {
        format!("{}{form}{{{name}}}", self.prefix)
    }

    /// Runs commands on the connection, on a thread of this crate, whether or not the caller waits for them.
    async fn run<T, F>(
        &self,
        commands: impl FnOnce(StoreConnection) -> F + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = RedisResult<T>> + Send,
    {
        let (link, deadline) = (self.link.clone(), self.deadline());
        self.spawn(async move { link.run(deadline, commands).await })
            .await
    }

    async fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let runtime = runtime().map_err(|error| no_thread(&error))?;
        let done = runtime.spawn(work).await;
        done.unwrap_or_else(|_| {
            let why = format!("the connection to the store at {} has ended", self.server);
            Err(StoreError::new(StoreFault::Broken, why))
        })
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("server", &self.server)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

fn no_thread(error: &std::io::Error) -> StoreError {
    let why = format!("no thread for the connection to the store: {error}");
    StoreError::new(StoreFault::Unavailable, why)
}
