//! Carries the messages of another protocol implementation over Streamable HTTP, unchanged.
//!
//! ```text
//!   host ─▶ send ─▶ driver ─┬─▶ one message, and what answers it        ╮ exchanges, whose sink
//!    ▲                      ├─▶ the stream of messages of no request    ╯ is the host
//!    ╰─ tell(RelayEvent) ───┴── messages, with the number of the message that they answer
//! ```
//!
//! The relay writes the headers: session, revision, and from 2026-07-28 on those that repeat fields of the
//! message. It passes on the messages themselves unchanged.

mod driver;
mod state;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use self::driver::{Command, RelayDriver};
use self::state::{RelayState, Unsent};
use super::options::HttpClientOptions;
use super::outgoing::OutgoingMessage;
use crate::error::CarrierError;
use crate::io::runtime::drive_client;
use crate::json::DecodeError;
use crate::limits::Limits;
use crate::message::Message;

/// Carries the messages of a client that is not of this crate: for other implementations of the
/// protocol that want this one's HTTP.
///
/// Dropped, it is [closed](Self::close).
///
/// ```no_run
/// use std::sync::mpsc::channel;
/// use mcpbolt::io::http::{SendOptions, RelayEvent, Relay, RelayOptions};
/// let (tell, told) = channel();
/// let told_by = move |arrived: RelayEvent| tell.send(arrived).unwrap_or_default();
/// let relay = Relay::open("http://127.0.0.1:8000/mcp", RelayOptions::default(), told_by)?;
/// let ping = r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
/// let number = relay.send(ping.as_bytes(), SendOptions::default());
/// for arrived in told {
///     match arrived {
///         RelayEvent::Message { of, message } => assert_eq!(of, Some(number), "{message:?}"),
///         RelayEvent::Done { .. } => break,
///         _ => {}
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Relay {
    commands: UnboundedSender<Command>,
    numbers: AtomicU64,
    state: Arc<RelayState>,
}

/// Options of a [`Relay`].
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// Options of HTTP. Redirects to other origins are refused: headers sent along with a message may
    /// be secrets.
    pub http: HttpClientOptions,
    /// Longest message, in bytes.
    pub max_message_bytes: usize,
    /// Longest event of a stream, in bytes; not above `max_message_bytes`.
    pub max_event_bytes: usize,
    /// Bytes of messages that the host has not [read](Relay::was_read) yet, above which the relay stops
    /// reading from the server.
    pub unread_bytes: usize,
    /// The id of a session that was begun elsewhere.
    pub session: Option<String>,
    /// Whether closing the relay ends the session (R-SES-06).
    pub ends_session: bool,
}

impl Default for RelayOptions {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            http: HttpClientOptions::default(),
            max_message_bytes: limits.max_message_bytes,
            max_event_bytes: limits.max_message_bytes,
            unread_bytes: limits.waiting_cap_bytes,
            session: None,
            ends_session: true,
        }
    }
}

/// Headers and position for one message.
#[derive(Clone, Default)]
pub struct SendOptions {
    /// Headers of the message's HTTP requests, which replace headers of the same names. A revision
    /// header is remembered for later messages without one. Headers of `notifications/initialized` are
    /// also used for the stream that it opens. An invalid header is left out.
    pub headers: Vec<(String, String)>,
    /// A position in the stream of an earlier request. Instead of sending the message, the relay
    /// requests the rest of that stream (R-SSE-04).
    pub resume: Option<String>,
}

/// Omits the values of headers, which may be secrets.
impl fmt::Debug for SendOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("SendOptions")
            .field("headers", &names)
            .field("resume", &self.resume)
            .finish()
    }
}

/// Events that a [`Relay`] reports to its host, in the order in which they arrive. `of` is the number
/// of the message that an event belongs to; `None` on the stream of messages that belong to no request.
#[derive(Debug)]
#[non_exhaustive]
pub enum RelayEvent {
    /// A message of the server, validated. One with an error status is the error that answers the
    /// request, whatever id it names.
    Message {
        /// The message that it belongs to.
        of: Option<u64>,
        /// The message, which may be a batch or not be JSON-RPC.
        message: Box<Message>,
    },
    /// Invalid JSON arrived on the stream of messages that belong to no request.
    Bad(DecodeError),
    /// The stream has been read up to here: it can be [resumed](SendOptions::resume) at this position.
    Position {
        /// The message that the stream belongs to.
        of: Option<u64>,
        /// The id of the event.
        position: String,
    },
    /// `initialize` was answered; the session has this id, if any.
    Session(Option<String>),
    /// Nothing more arrives for that message: it was answered, accepted or cancelled, or it failed.
    Done {
        /// The number of the message.
        of: u64,
        /// [`SessionLost`](crate::error::CarrierFault::SessionLost) when its session has ended.
        outcome: Result<(), CarrierError>,
    },
    /// The relay was closed, and has sent everything it had to.
    Ended,
}

impl Relay {
    /// Creates a relay to the server at `url`; nothing is sent yet. `tell` is called with each event,
    /// on threads of this crate, which it must not block.
    ///
    /// # Errors
    /// When the URL or an option is not valid.
    pub fn open(
        url: &str,
        options: RelayOptions,
        tell: impl Fn(RelayEvent) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let state = Arc::new(RelayState::new(url, options, Box::new(tell))?);
        let (commands, queue) = unbounded_channel();
        drive_client(RelayDriver::new(state.clone()).run(queue))?;
        Ok(Self {
            commands,
            numbers: AtomicU64::new(1),
            state,
        })
    }

    /// Sends a message and returns its number. A request is in flight until it is answered; a
    /// `notifications/cancelled` ends the request that it names, which over 2026-07-28 is the only
    /// signal sent (R-CAN-05). Requests beyond [`max_concurrent`](HttpClientOptions::max_concurrent)
    /// wait, except `subscriptions/listen`. Notifications are sent one after the other; requests wait
    /// until the server has accepted `notifications/initialized`. Answers, and messages of any other
    /// kind, are sent at once.
    pub fn send(&self, message: impl Into<Bytes>, along: SendOptions) -> u64 {
        let of = self.numbers.fetch_add(1, Ordering::Relaxed);
        let message = OutgoingMessage::new(message.into());
        let unsent = Unsent::new(&message, &self.state.unsent);
        self.command(Command::Send(Box::new((of, message, along, unsent))));
        of
    }

    /// Bytes of messages that the server has not accepted yet. With more than some megabytes, a host
    /// should wait until messages are [done](RelayEvent::Done) before it sends further requests.
    pub fn unsent_bytes(&self) -> usize {
        self.state.unsent.load(Ordering::Acquire)
    }

    /// Tells the relay that the host has processed messages of that many bytes.
    pub fn was_read(&self, bytes: usize) {
        self.state.was_read(bytes);
    }

    /// Ends the session on the server (R-SES-06); returns the number of this operation.
    pub fn end_session(&self) -> u64 {
        let of = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.command(Command::EndSession(of));
        of
    }

    /// Drops requests in flight, sends the notifications that wait, and ends the session if
    /// [`ends_session`](RelayOptions::ends_session) is set. [`RelayEvent::Ended`] reports when that is
    /// done, after a few seconds at most.
    pub fn close(&self) {
        self.command(Command::Close);
    }

    fn command(&self, command: Command) {
        // Fails only when the relay is closed.
        let _ = self.commands.send(command);
    }
}

/// The host's callback.
type Tell = Box<dyn Fn(RelayEvent) + Send + Sync>;
