//! Clients on HTTP: Streamable HTTP of every revision, and the pair of 2024-11-05.
//!
//! ```text
//!   handles ─▶ Connection ─▶ driver ─┬─▶ exchange: one message, its answer as JSON or events,
//!                 ▲                  │             resumed where the revision has it
//!                 │                  ├─▶ standing: what belongs to no request   (handshake era)
//!                 │                  ├─▶ renewal: another session for one that has ended
//!                 ╰── what came ─────┴─▶ pair: one stream for all answers       (2024-11-05)
//! ```
//!
//! Everything of one client runs in one task: the connection is driven where its answers arrive.
//!
//! | file | what it is for |
//! |---|---|
//! | `options` | what a program may say of all this |
//! | `link` | requests of HTTP: credentials, redirects, and what failed |
//! | `outgoing`, `mirror` | one message, and what is said of it in headers |
//! | `events`, `answer` | what comes back |
//! | `follow` | a stream that answers a request, resumed where it breaks off |
//! | `engine` | the connection, and what feeds it |
//! | `carrier` | what all tasks share |
//! | `exchange`, `standing`, `renewal`, `pair` | the tasks of the drawing |
//! | `driver` | who has which turn |
//! | `actions` | the same for the action dialect, whose requests stand alone |
//! | `known` | servers that were found to open with a handshake |
//! | `relay` | all of it for somebody else's client: no connection of the engine's |
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
pub use self::relay::{Along, Arrived, Relay, RelayOptions};
