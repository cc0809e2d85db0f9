//! Joins a client and a server in one process without a descriptor, for example in tests.

use std::io::{self, IoSlice};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Instant;

use super::hosted::Hosted;
use super::machine::Machine;
#[cfg(all(feature = "server", feature = "client"))]
use super::trace::traced;
#[cfg(all(feature = "server", feature = "client"))]
use crate::connection::{Callers, Config, observed_there};
use crate::connection::{Connection, Framing, Host, Wake};
use crate::error::ConnectionError;

/// Unparks the thread that moves the bytes; does nothing before that thread runs.
#[derive(Default)]
struct Mover(OnceLock<Thread>);

impl Wake for Mover {
    fn wake(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

/// The server's side of a connection within this process. `callers` say who sends its requests, if another party passes them on; hosts look
/// for them when they are made.
///
/// # Errors
/// As [`traced`].
#[cfg(all(feature = "server", feature = "client"))]
pub fn server_side(
    config: &Arc<Config>,
    callers: Option<Arc<dyn Callers>>,
    now: Instant,
) -> io::Result<Connection> {
    let Some(callers) = callers else {
        return Ok(Connection::new(traced(config.clone())?, now));
    };
    let config = observed_there(config, &callers);
    let mut far = Connection::new(traced(config)?, now);
    far.set_callers(callers);
    Ok(far)
}

/// Joins two connections on a new thread, until one of them ends.
///
/// # Errors
/// When the thread cannot be started.
pub fn join<A, B>((a, host_a): (Connection, A), (b, host_b): (Connection, B)) -> io::Result<()>
where
    A: Host + Send + 'static,
    B: Host + Send + 'static,
{
    let mover = Arc::new(Mover::default());
    a.set_wake(mover.clone());
    b.set_wake(mover.clone());
    let run = move || {
        let _ = mover.0.set(thread::current());
        pump(
            &mut Hosted::new(a, Framing::Line, host_a),
            &mut Hosted::new(b, Framing::Line, host_b),
        );
    };
    thread::Builder::new()
        .name("mcpbolt-pair".to_owned())
        .spawn(run)
        .map(drop)
}

/// Connects a client to `server` in this process.
///
/// ```
/// # use mcpbolt::{client::{Client, block_on}, io, server::{Arguments, Server, Tool}};
/// let server = Server::builder("hello", "1.0.0")
///     .tool(Tool::new("hello"), |_: Arguments, _| async { "hello" })
///     .build()?;
/// let client = block_on(Client::open(io::connect_pair(&server, Client::config("test", "1"))?))?;
/// let result = client.call_tool("hello", &serde_json::json!({})).wait()?;
/// assert_eq!(result.text(), "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When a thread cannot be started, or the trace that
/// [`TRACE_VARIABLE`](super::TRACE_VARIABLE) asks for cannot be written.
#[cfg(all(feature = "server", feature = "client"))]
pub fn connect_pair(
    server: &crate::server::Server,
    config: crate::connection::Config,
) -> io::Result<crate::connection::Handle> {
    let connection = Connection::new(traced(Arc::new(config))?, Instant::now());
    let handle = connection.handle();
    let host = crate::client::ClientHost::new();
    join(
        super::serve::server_side(server, super::spawn::workers())?,
        (connection, host),
    )?;
    Ok(handle)
}

/// Moves bytes in both directions until one side has ended.
fn pump(a: &mut impl Machine, b: &mut impl Machine) {
    loop {
        let now = Instant::now();
        let moved = turn(a, b, now) | turn(b, a, now);
        if a.is_closed() || b.is_closed() {
            a.close(ConnectionError::ClosedByPeer);
            return b.close(ConnectionError::ClosedByPeer);
        }
        if moved {
            continue;
        }
        match [a.poll_timeout(), b.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
        {
            Some(due) => thread::park_timeout(due.saturating_duration_since(now)),
            None => thread::park(),
        }
    }
}

/// Handles submissions and timers of one side, and moves its output to the other. Returns whether
/// anything moved.
fn turn(from: &mut impl Machine, to: &mut impl Machine, now: Instant) -> bool {
    from.handle_submissions(now);
    if from.poll_timeout().is_some_and(|due| due <= now) {
        from.handle_timeout(now);
    }
    let mut moved = false;
    while !from.output().is_empty() && to.wants_read() {
        let mut slices = [IoSlice::new(&[])];
        from.output().io_slices(&mut slices);
        let room = to.input().spare(slices[0].len());
        let n = slices[0].len().min(room.len());
        room[..n].copy_from_slice(&slices[0][..n]);
        to.input().advance(n);
        from.output().advance(n);
        to.receive(now);
        moved = true;
    }
    moved
}
