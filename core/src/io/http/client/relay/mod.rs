//! Messages of a client that has a protocol of its own, carried over Streamable HTTP as they are.
//!
//! ```text
//!   host ─▶ send ─▶ driver ─┬─▶ exchange: one message, and the stream that answers it, resumed
//!    ▲                      ├─▶ exchange: the stream of what belongs to no request
//!    ╰── tell(Arrived) ─────┴── what came, with the number of what it answers
//! ```
//!
//! What is said in headers is said here: the session, the revision, and from 2026-07-28 on what a
//! message is about. What is in a message is the host's affair, and so is every answer to it.

mod driver;
mod exchange;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use self::driver::{Command, Driver};
use self::exchange::{Shared, Unsent};
use super::link::Link;
use super::options::HttpClientOptions;
use super::outgoing::Outgoing;
use crate::error::CarrierError;
use crate::io::farewell::drive;
use crate::json::DecodeError;
use crate::limits::Limits;
use crate::message::Message;

/// Carries the messages of a client that is none of this crate's: for other implementations of the
/// protocol that want this one's HTTP.
///
/// Dropped, it is [closed](Self::close).
///
/// ```no_run
/// use std::sync::mpsc::channel;
/// use mcpbolt::io::http::{Along, Arrived, Relay, RelayOptions};
/// let (tell, told) = channel();
/// let told_by = move |arrived: Arrived| tell.send(arrived).unwrap_or_default();
/// let relay = Relay::open("http://127.0.0.1:8000/mcp", RelayOptions::default(), told_by)?;
/// let ping = r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
/// let number = relay.send(ping.as_bytes(), Along::default());
/// for arrived in told {
///     match arrived {
///         Arrived::Message { of, message } => assert_eq!(of, Some(number), "{message:?}"),
///         Arrived::Done { .. } => break,
///         _ => {}
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Relay {
    commands: UnboundedSender<Command>,
    numbers: AtomicU64,
    shared: Arc<Shared>,
}

/// How a [`Relay`] goes about it.
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// How it goes about HTTP. Redirects to other origins are refused: headers that come along with a
    /// message may be secrets.
    pub http: HttpClientOptions,
    /// Longest message, in bytes.
    pub max_message_bytes: usize,
    /// Longest event of a stream, in bytes; not above the above.
    pub max_event_bytes: usize,
    /// Bytes of messages that the host has yet to [look at](Relay::was_read), above which no more are
    /// read.
    pub unread_bytes: usize,
    /// The name of a session that has begun elsewhere.
    pub session: Option<String>,
    /// Whether the session is ended when the relay is closed (R-SES-06).
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

/// What goes along with one message.
#[derive(Clone, Default)]
pub struct Along {
    /// Headers of its requests, in place of those that would be sent under these names. What names the
    /// revision is remembered for what has none; those of `notifications/initialized` are also those
    /// of the stream that follows it. A header that cannot be is left out.
    pub headers: Vec<(String, String)>,
    /// The position in the stream of an earlier request, whose rest is asked for in place of sending
    /// the message (R-SSE-04).
    pub resume: Option<String>,
}

/// Without the values of headers, which may be secrets.
impl fmt::Debug for Along {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Along")
            .field("headers", &names)
            .field("resume", &self.resume)
            .finish()
    }
}

/// What a [`Relay`] tells its host, in the order in which it came. `of` is the number of the message to
/// which it belongs; `None` for what came on the stream of what belongs to no request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Arrived {
    /// A message of the server's, validated. One that came with a status that is no success is the
    /// error that answers the request, whatever id it names.
    Message {
        /// What it belongs to.
        of: Option<u64>,
        /// The message, which may be a batch or no message of JSON-RPC.
        message: Box<Message>,
    },
    /// What is no JSON came on the stream of what belongs to no request.
    Bad(DecodeError),
    /// The stream has been read up to here: where it can be [resumed](Along::resume).
    Position {
        /// What the stream belongs to.
        of: Option<u64>,
        /// The id of the event.
        position: String,
    },
    /// The answer to `initialize` came, and gave the session this name.
    Session(Option<String>),
    /// Nothing more comes of that message: it was answered, taken or given up, or why not.
    Done {
        /// The message.
        of: u64,
        /// [`SessionLost`](crate::error::CarrierFault::SessionLost) when its session has ended.
        outcome: Result<(), CarrierError>,
    },
    /// The relay was closed, and has said all that it had to.
    Ended,
}

impl Relay {
    /// Makes ready to carry messages to the server at `url`; nothing is sent yet. `tell` learns what
    /// comes, on threads of the engine's that are not to be held up.
    ///
    /// # Errors
    /// When the URL or an option is not valid.
    pub fn open(
        url: &str,
        options: RelayOptions,
        tell: impl Fn(Arrived) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let link = Link::new(url, &options.http)?.staying();
        let shared = Arc::new(Shared::new(link, options, Box::new(tell))?);
        let (commands, queue) = unbounded_channel();
        drive(Driver::new(shared.clone()).run(queue))?;
        Ok(Self {
            commands,
            numbers: AtomicU64::new(1),
            shared,
        })
    }

    /// Sends a message, and gives its number. A request is under way until it is answered, and a
    /// `notifications/cancelled` ends the one that it names: over 2026-07-28 that alone says so
    /// (R-CAN-05). Requests beyond [`max_concurrent`](HttpClientOptions::max_concurrent) wait their
    /// turn, all but `subscriptions/listen`; notifications go one after the other, and nothing
    /// overtakes `notifications/initialized`. What is no request is carried as a notification.
    pub fn send(&self, message: impl Into<Bytes>, along: Along) -> u64 {
        let of = self.numbers.fetch_add(1, Ordering::Relaxed);
        let message = Outgoing::new(message.into());
        let unsent = Unsent::new(&message, &self.shared.unsent);
        self.command(Command::Send(Box::new((of, message, along, unsent))));
        of
    }

    /// Bytes of messages that the server has not taken: who sends requests beyond some megabytes is to
    /// wait for some to be [done](Arrived::Done).
    pub fn unsent_bytes(&self) -> usize {
        self.shared.unsent.load(Ordering::Acquire)
    }

    /// The host has looked at messages of that many bytes.
    pub fn was_read(&self, bytes: usize) {
        self.shared.room.give(bytes);
    }

    /// Ends the session on the server (R-SES-06), and gives this message's number.
    pub fn end_session(&self) -> u64 {
        let of = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.command(Command::EndSession(of));
        of
    }

    /// Gives up what is under way, says the notifications that wait, and ends the session if that was
    /// asked for; [`Arrived::Ended`] tells when that is done, after a few seconds at most.
    pub fn close(&self) {
        self.command(Command::Close);
    }

    fn command(&self, command: Command) {
        // Nobody takes it any more when it is closed.
        let _ = self.commands.send(command);
    }
}

/// Whom it tells.
type Tell = Box<dyn Fn(Arrived) + Send + Sync>;
