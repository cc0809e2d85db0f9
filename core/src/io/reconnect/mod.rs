//! A client that survives the loss of its connection: it reconnects, and restores subscriptions and
//! settings on the new connection.

mod backoff;
mod watch;
mod wishes;

use std::future::{Future, poll_fn};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

pub use self::backoff::Backoff;
use self::wishes::Wishes;
use crate::client::{Client, Interests, Listening, block_on};
use crate::error::{ConnectionError, RequestError};
use crate::mcp::LogLevel;
use crate::model::Tool;
use crate::sync::lock;

/// A client that reconnects to its server whenever the connection is lost (R-STD-09, R-SUB-07).
///
/// Requests in flight when a connection is lost fail with [`RequestError::Closed`]; they are not sent
/// again. Subscriptions, listening, tool listings and the log level set through this type are restored
/// on each new connection before [`client`](Self::client) returns it. Dropping it closes the current
/// connection.
///
/// ```no_run
/// use mcpbolt::client::{Client, block_on};
/// use mcpbolt::io::{Backoff, ChildCommand, Reconnecting};
///
/// let open = || Client::builder("chat", "1.0.0")
///     .on_notice(|notice| println!("{notice:?}"))
///     .spawn(ChildCommand::new("path/to/server"));
/// let server = Reconnecting::new(open, Backoff::default())?;
/// block_on(server.subscribe("file:///notes.txt"))?;
/// let result = block_on(async { server.client().await?.call_tool("echo", &()).await })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reconnecting {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Signals that reconnecting has ended, or must end.
    over: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The client on the current connection.
    client: Option<Client>,
    wishes: Wishes,
    listening: Option<Listening>,
    openings: u64,
    end: Option<RequestError>,
    wakers: Vec<Waker>,
}

impl Reconnecting {
    /// Opens a connection, and a new one whenever it is lost, on a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn new<F>(open: impl FnMut() -> F + Send + 'static, backoff: Backoff) -> io::Result<Self>
    where
        F: Future<Output = io::Result<Client>>,
    {
        let shared = Arc::<Shared>::default();
        let keeps = shared.clone();
        thread::Builder::new()
            .name("mcpbolt-reconnect".to_owned())
            .spawn(move || {
                let keeper = Keeper(keeps);
                keeper.0.keep(open, backoff);
            })?;
        Ok(Self { shared })
    }

    /// The client on the current connection; waits while there is none.
    ///
    /// # Errors
    /// Why there will be no connection: the attempts were given up, or this client was closed.
    pub async fn client(&self) -> Result<Client, RequestError> {
        poll_fn(|cx| self.shared.poll_client(cx)).await
    }

    /// How many connections have been opened so far.
    pub fn openings(&self) -> u64 {
        self.shared.lock().openings
    }

    /// Subscribes to a resource, on this and all later connections: [`Client::subscribe`].
    ///
    /// # Errors
    /// As there; then later connections do not subscribe either.
    pub async fn subscribe(&self, uri: &str) -> Result<(), RequestError> {
        self.shared.lock().wishes.uris.insert(uri.to_owned());
        let outcome = self.now(async |client| client.subscribe(uri).await).await;
        // The watch over change streams has another stream to poll.
        self.shared.change(|state| {
            if outcome.is_err() {
                state.wishes.uris.remove(uri);
            }
        });
        outcome
    }

    /// Ends the subscription to a resource: [`Client::unsubscribe`].
    ///
    /// # Errors
    /// As there.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), RequestError> {
        self.shared.lock().wishes.uris.remove(uri);
        self.now(async |client| client.unsubscribe(uri).await).await
    }

    /// Asks the server to report changes, on this and all later connections; replaces earlier
    /// interests: [`Client::listen`]. Only for servers of 2026-07-28; older ones report changes anyway.
    ///
    /// # Errors
    /// As there; then the earlier interests stay.
    pub async fn listen(&self, interests: Interests) -> Result<(), RequestError> {
        let before = self
            .shared
            .lock()
            .wishes
            .interests
            .replace(interests.clone());
        let listen = async |client: &Client| client.listen(interests.clone()).await;
        let outcome = self.now(listen).await;
        let (mut replaced, mut failed) = (None, Ok(()));
        self.shared.change(|state| match outcome {
            Ok(listening) => replaced = state.listening.replace(listening),
            Err(error) => {
                state.wishes.interests = before;
                failed = Err(error);
            }
        });
        drop(replaced);
        failed
    }

    /// Sets the minimum severity of log messages, on this and all later connections:
    /// [`Client::set_log_level`].
    ///
    /// # Errors
    /// As there; then later connections keep the earlier level.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), RequestError> {
        let before = self.shared.lock().wishes.level.replace(level);
        let outcome = self.now(async |client| client.set_log_level(level).await);
        let outcome = outcome.await;
        if outcome.is_err() {
            self.shared.lock().wishes.level = before;
        }
        outcome
    }

    /// Lists the server's tools: [`Client::list_tools`]. Later connections list them again, so that
    /// results are always checked against the output schemas of the server that returned them.
    ///
    /// # Errors
    /// As there.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, RequestError> {
        self.shared.lock().wishes.tools = true;
        self.now(async |client| client.list_tools().await).await
    }

    /// Closes the current connection, and opens no other.
    pub fn close(&self) {
        self.shared
            .end(RequestError::Closed(ConnectionError::ClosedLocally));
    }

    /// Runs an idempotent request; repeats it on the next connection if this one is lost.
    async fn now<T>(
        &self,
        mut ask: impl AsyncFnMut(&Client) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        loop {
            let client = self.client().await?;
            match ask(&client).await {
                Err(RequestError::Closed(_)) if client.handle().is_closed() => {}
                outcome => return outcome,
            }
        }
    }
}

impl Drop for Reconnecting {
    fn drop(&mut self) {
        self.close();
    }
}

/// Ends the client when dropped, so that waiters are woken even if `open` panics.
struct Keeper(Arc<Shared>);

impl Drop for Keeper {
    fn drop(&mut self) {
        let gone = ConnectionError::ClosedLocally;
        self.0.end(RequestError::Closed(gone));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn poll_client(&self, cx: &Context<'_>) -> Poll<Result<Client, RequestError>> {
        let mut state = self.lock();
        if let Some(end) = &state.end {
            return Poll::Ready(Err(end.clone()));
        }
        let client = state.client.as_ref();
        if let Some(client) = client.filter(|client| !client.handle().is_closed()) {
            return Poll::Ready(Ok(client.clone()));
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Changes the state, and wakes all tasks that wait for a client.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends reconnecting. Only the first reason counts.
    fn end(&self, reason: RequestError) {
        let mut last = None;
        self.change(|state| {
            state.end.get_or_insert(reason);
            last = state.client.take().zip(Some(state.listening.take()));
        });
        self.over.notify_all();
        if let Some((client, _)) = &last {
            client.close();
        }
    }

    /// Keeps a connection open until reconnecting ends.
    fn keep<F>(&self, mut open: impl FnMut() -> F, backoff: Backoff)
    where
        F: Future<Output = io::Result<Client>>,
    {
        let mut failures = 0;
        while self.lock().end.is_none() {
            let begun = Instant::now();
            let lost = block_on(self.live(open(), backoff));
            // Drops wakers of tasks that gave up waiting; the others register again.
            self.change(|_| ());
            failures = match begun.elapsed() > backoff.longest && lost.is_ok() {
                true => 1,
                false => failures + 1,
            };
            if failures >= backoff.attempts {
                let soon = || RequestError::Closed(ConnectionError::ClosedByPeer);
                self.end(lost.err().unwrap_or_else(soon));
            }
            let until = Instant::now() + backoff.spread(failures);
            let mut state = self.lock();
            while state.end.is_none()
                && let Some(left) = until.checked_duration_since(Instant::now())
            {
                let waited = self.over.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// One connection, from its opening to its loss.
    async fn live(
        &self,
        opening: impl Future<Output = io::Result<Client>>,
        backoff: Backoff,
    ) -> Result<(), RequestError> {
        let client = opening.await.map_err(|error| reason(&error))?;
        let wishes = self.lock().wishes.clone();
        let listening = wishes.ask_for(&client).await?;
        let mut late = false;
        self.change(|state| {
            late = state.end.is_some();
            if !late {
                state.client = Some(client.clone());
                state.listening = listening;
                state.openings += 1;
            }
        });
        if late {
            client.close();
        }
        self.watch(&client, backoff).await;
        let mut last = None;
        self.change(|state| last = Some((state.client.take(), state.listening.take())));
        Ok(())
    }
}

/// Why a connection could not be opened.
fn reason(error: &io::Error) -> RequestError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let own = || RequestError::Closed(ConnectionError::Io(error.kind()));
    inner.cloned().unwrap_or_else(own)
}
