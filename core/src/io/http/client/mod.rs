//! Clients on HTTP: Streamable HTTP of every revision, and the two endpoints of 2024-11-05.
//!
//! ```text
//!   handles ─▶ Connection ─▶ driver ─┬─▶ exchange: one message, answered as JSON or events,
//!                 ▲                  │             resumed where the revision allows it
//!                 │                  ├─▶ standing: messages of no request       (handshake era)
//!                 │                  ├─▶ renewal: a new session for one that has ended
//!                 ╰── messages ──────┴─▶ pair: one stream for all answers       (2024-11-05)
//! ```
//!
//! Everything of one client runs in one task: the connection is driven where its answers arrive.
//!
//! | file | what it is for |
//! |---|---|
//! | `options` | the options of a client |
//! | `link` | HTTP requests: credentials, redirects and failures |
//! | `outgoing`, `mirror` | one outgoing message, and the headers that repeat its fields |
//! | `events`, `answer` | parsing of responses |
//! | `follow` | a stream that answers a request, resumed when it breaks off |
//! | `engine` | the connection, and the queue of messages that feeds it |
//! | `carrier` | the state that all tasks share |
//! | `exchange`, `standing`, `renewal`, `pair` | the tasks of the drawing |
//! | `driver` | polls the parts in turn |
//! | `actions` | the driver of the action dialect, in which each request stands alone |
//! | `known` | servers that are known to begin with a handshake |
//! | `relay` | the same transport for another program's client, without an engine connection |
//! | `open` | [`ClientBuilder::http`](crate::client::ClientBuilder::http) |

mod actions;
mod answer;
mod carrier;
mod driver;
mod engine;
mod events;
mod exchange;
mod follow;
mod known;
mod link;
mod mirror;
mod open;
mod options;
mod outgoing;
mod pair;
mod relay;
mod renewal;
mod standing;

pub use self::options::{HttpClientOptions, Proxy};
pub use self::relay::{Relay, RelayEvent, RelayOptions, SendOptions};
