//! Connections that are kept and used again.

mod ledger;
#[cfg(feature = "net")]
mod target;

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Instant;

use self::ledger::{ConnectionId, Ticket};
pub use self::ledger::{PoolAsked, PoolCounts, PoolGrant, PoolLedger, PoolOptions};
#[cfg(feature = "net")]
pub use self::target::PoolTarget;
use crate::client::Client;

type Opening = Pin<Box<dyn Future<Output = io::Result<Client>> + Send>>;

/// Connections to servers, used again by later callers (R-POL-01 to R-POL-05).
///
/// A caller [gets](Self::get) a connection that nobody has, else a new one, else it waits for its turn. The
/// connection is its own until it is dropped. A key stands for everything that tells connections apart:
/// server, credentials, revision. `PoolTarget` (feature `net`) is such a key for servers at addresses; in a key of
/// the program's own, different credentials must make different keys.
///
/// Each connection does its own handshake. One that has broken leaves the pool, and so does one that is
/// given back with subscriptions. Cheap to clone; when the last clone is dropped, idle connections are
/// closed.
///
/// ```no_run
/// use mcpbolt::client::{Client, block_on};
/// use mcpbolt::io::{ChildCommand, Pool, PoolOptions};
///
/// let open = |program: &String| Client::builder("chat", "1.0.0").spawn(ChildCommand::new(program));
/// let pool = Pool::new(open, PoolOptions::default());
/// let client = block_on(pool.get(&"path/to/server".to_owned()))?;
/// let result = block_on(client.call_tool("echo", &()))?;
/// drop(client); // The next caller gets the same connection.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pool<K: Clone + Eq + Hash> {
    shared: Arc<Shared<K>>,
    _owner: Arc<Owner<K>>,
}

/// Ends the pool when its last clone is dropped; callers keep what they have.
struct Owner<K: Clone + Eq + Hash>(Arc<Shared<K>>);

impl<K: Clone + Eq + Hash> Drop for Owner<K> {
    fn drop(&mut self) {
        self.0.end(false);
    }
}

struct Shared<K> {
    open: Box<dyn Fn(&K) -> Opening + Send + Sync>,
    wait: std::time::Duration,
    state: Mutex<State<K>>,
    /// Signals that time has to be looked at anew, or that the pool has ended.
    changed: Condvar,
}

struct State<K> {
    ledger: PoolLedger<K>,
    clients: HashMap<ConnectionId, Client>,
    callers: HashMap<Ticket, Caller>,
    /// Whether a thread looks at the time.
    is_watched: bool,
    is_over: bool,
}

/// The state of a caller that waits.
enum Caller {
    Waits(Option<Waker>),
    Has(PoolGrant),
    Expired,
}

/// Why there is no connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum PoolError {
    /// All connections were in use for as long as a caller waits.
    TimedOut(std::time::Duration),
    /// Too many callers wait already.
    TooManyWait,
    /// The connection could not be opened.
    Open(io::Error),
    /// The pool is closed.
    Closed,
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(time) => {
                write!(f, "all connections of the pool were in use for {time:?}")
            }
            Self::TooManyWait => f.write_str("too many callers wait for a connection of the pool"),
            Self::Open(error) => write!(f, "no connection could be opened: {error}"),
            Self::Closed => f.write_str("the pool is closed"),
        }
    }
}

impl Error for PoolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Open(error) => Some(error),
            _ => None,
        }
    }
}

impl From<PoolError> for io::Error {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Open(error) => error,
            PoolError::TimedOut(_) => Self::new(io::ErrorKind::TimedOut, error),
            PoolError::TooManyWait => Self::new(io::ErrorKind::WouldBlock, error),
            PoolError::Closed => Self::new(io::ErrorKind::NotConnected, error),
        }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Pool<K> {
    /// A pool whose connections `open` opens.
    pub fn new<F>(open: impl Fn(&K) -> F + Send + Sync + 'static, options: PoolOptions) -> Self
    where
        F: Future<Output = io::Result<Client>> + Send + 'static,
    {
        let wait = options.wait_timeout;
        let state = State {
            ledger: PoolLedger::new(options),
            clients: HashMap::new(),
            callers: HashMap::new(),
            is_watched: false,
            is_over: false,
        };
        let shared = Arc::new(Shared {
            open: Box::new(move |key| Box::pin(open(key))),
            wait,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let _owner = Arc::new(Owner(shared.clone()));
        Self { shared, _owner }
    }

    /// Gets a connection of a key.
    ///
    /// # Errors
    /// When it cannot be opened, or none was free in time.
    ///
    /// # Cancel safety
    /// A caller that is dropped gives up its turn; a connection that it was opening is closed.
    pub async fn get(&self, key: &K) -> Result<Pooled<K>, PoolError> {
        loop {
            let id = match self.granted(key).await? {
                PoolGrant::Open(id) => return self.open(key, self.lease(id)).await,
                PoolGrant::Use(id) => id,
            };
            let mut state = self.shared.lock();
            let client = state.clients.get(&id).cloned();
            let client = client.filter(|client| !client.handle().is_closed());
            match client {
                // Somebody else who has it changed it, or has it still although it was given back.
                Some(client) if is_changed(&client) => {
                    state.ledger.give_back(id, false, Instant::now());
                }
                Some(client) => {
                    drop(state);
                    let lease = self.lease(id);
                    return Ok(Pooled { client, lease });
                }
                // It broke while nobody had it.
                None => state.lose(id),
            }
            self.shared.settle(state);
        }
    }

    async fn open(&self, key: &K, lease: Lease<K>) -> Result<Pooled<K>, PoolError> {
        let client = (self.shared.open)(key).await.map_err(PoolError::Open)?;
        let mut state = self.shared.lock();
        if state.is_over {
            drop(state);
            client.close();
            return Err(PoolError::Closed);
        }
        state.clients.insert(lease.id, client.clone());
        state.ledger.opened(lease.id, Instant::now());
        self.shared.settle(state);
        Ok(Pooled { client, lease })
    }

    /// Counters.
    pub fn counts(&self) -> PoolCounts {
        self.shared.lock().ledger.counts()
    }

    /// Closes all connections, also those in use; callers that wait, or come later, are refused.
    pub fn close(&self) {
        self.shared.end(true);
    }

    fn lease(&self, id: ConnectionId) -> Lease<K> {
        Lease {
            shared: self.shared.clone(),
            id,
        }
    }

    async fn granted(&self, key: &K) -> Result<PoolGrant, PoolError> {
        let ticket = {
            let mut state = self.shared.lock();
            if state.is_over {
                return Err(PoolError::Closed);
            }
            let asked = state.ledger.ask(key, Instant::now());
            if let PoolAsked::Waits(ticket) = asked {
                state.callers.insert(ticket, Caller::Waits(None));
            }
            self.shared.settle(state);
            self.shared.be_watched();
            match asked {
                PoolAsked::Granted(grant) => return Ok(grant),
                PoolAsked::Refused => return Err(PoolError::TooManyWait),
                PoolAsked::Waits(ticket) => ticket,
            }
        };
        let _turn = Turn {
            shared: &self.shared,
            ticket,
        };
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            let is_over = state.is_over;
            match state.callers.get_mut(&ticket) {
                Some(Caller::Waits(waker)) => {
                    *waker = Some(cx.waker().clone());
                    Poll::Pending
                }
                Some(Caller::Has(grant)) => {
                    let grant = *grant;
                    state.callers.remove(&ticket);
                    Poll::Ready(Ok(grant))
                }
                _ if is_over => Poll::Ready(Err(PoolError::Closed)),
                _ => Poll::Ready(Err(PoolError::TimedOut(self.shared.wait))),
            }
        })
        .await
    }
}

impl<K: Clone + Eq + Hash> Clone for Pool<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            _owner: self._owner.clone(),
        }
    }
}

impl<K: Clone + Eq + Hash> fmt::Debug for Pool<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool(..)")
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    /// A connection is not there any more.
    fn lose(&mut self, id: ConnectionId) {
        self.clients.remove(&id);
        self.ledger.lost(id, Instant::now());
    }
}

impl<K: Clone + Eq + Hash> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out what the ledger has decided, and lets go of the state.
    fn settle(&self, mut state: MutexGuard<'_, State<K>>) {
        let mut woken = Vec::new();
        let granted = state.ledger.take_granted().into_iter();
        let granted: Vec<_> = granted
            .map(|(ticket, grant)| (ticket, Caller::Has(grant)))
            .collect();
        let expired = state.ledger.take_expired().into_iter();
        let expired = expired.map(|ticket| (ticket, Caller::Expired));
        for (ticket, outcome) in granted.into_iter().chain(expired) {
            if let Some(caller) = state.callers.get_mut(&ticket)
                && let Caller::Waits(Some(waker)) = std::mem::replace(caller, outcome)
            {
                woken.push(waker);
            }
        }
        let closing = state.ledger.take_closing().into_iter();
        let closing: Vec<_> = closing.filter_map(|id| state.clients.remove(&id)).collect();
        drop(state);
        self.changed.notify_all();
        closing.iter().for_each(Client::close);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Ends the pool; `at_once` also closes connections that callers have.
    fn end(&self, at_once: bool) {
        let mut state = self.lock();
        state.is_over = true;
        state.ledger.close_all(at_once);
        self.settle(state);
    }

    /// Looks at the time until the pool has ended, or there is nothing to look for.
    fn watch(&self) {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            match state.ledger.next_deadline() {
                Some(deadline) if !state.is_over => match deadline.checked_duration_since(now) {
                    Some(left) if !left.is_zero() => {
                        let waited = self.changed.wait_timeout(state, left);
                        state = waited.unwrap_or_else(PoisonError::into_inner).0;
                    }
                    _ => {
                        state.ledger.advance(now);
                        self.settle(state);
                        state = self.lock();
                    }
                },
                _ => {
                    state.is_watched = false;
                    return;
                }
            }
        }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Shared<K> {
    /// Sees to it that a thread looks at the time, if there is something to look for.
    fn be_watched(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.is_watched || state.is_over || state.ledger.next_deadline().is_none() {
            return;
        }
        let shared = self.clone();
        let watch = move || shared.watch();
        let thread = thread::Builder::new().name("mcpbolt-pool".to_owned());
        // Without a thread, callers wait until a connection is given back.
        state.is_watched = thread.spawn(watch).is_ok();
    }
}

/// Whether something of a caller is left at the server, which is not for the next one.
fn is_changed(client: &Client) -> bool {
    client.has_subscriptions() || client.has_settings()
}

/// The place of a caller that waits.
struct Turn<'a, K: Clone + Eq + Hash> {
    shared: &'a Shared<K>,
    ticket: Ticket,
}

impl<K: Clone + Eq + Hash> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let now = Instant::now();
        match state.callers.remove(&self.ticket) {
            Some(Caller::Waits(_)) => state.ledger.withdraw(self.ticket),
            Some(Caller::Has(PoolGrant::Use(id))) => state.ledger.decline(id, now),
            Some(Caller::Has(PoolGrant::Open(id))) => state.lose(id),
            Some(Caller::Expired) | None => return,
        }
        self.shared.settle(state);
    }
}

/// The right to a connection.
struct Lease<K: Clone + Eq + Hash + Send + Sync + 'static> {
    shared: Arc<Shared<K>>,
    id: ConnectionId,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Drop for Lease<K> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        match state
            .clients
            .get(&self.id)
            .map(|client| (client.handle().is_closed(), is_changed(client)))
        {
            None | Some((true, _)) => state.lose(self.id),
            Some((false, is_changed)) => {
                let is_fit = !is_changed && !state.is_over;
                state.ledger.give_back(self.id, is_fit, Instant::now());
            }
        }
        self.shared.settle(state);
        self.shared.be_watched();
    }
}

/// A connection of a [`Pool`], given back when this is dropped. Keep it for as long as its subscriptions and
/// what it listens to are needed: a connection with subscriptions is closed instead of given to another
/// caller, and so is one whose log level or roots were set.
pub struct Pooled<K: Clone + Eq + Hash + Send + Sync + 'static> {
    client: Client,
    lease: Lease<K>,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Pooled<K> {
    /// Closes the connection instead of giving it back, for one whose state is not known any more.
    pub fn discard(self) {
        self.client.close();
        let mut state = self.lease.shared.lock();
        state.lose(self.lease.id);
        self.lease.shared.settle(state);
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Deref for Pooled<K> {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> fmt::Debug for Pooled<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pooled").field(&self.client).finish()
    }
}
