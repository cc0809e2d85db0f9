//! Chains: a server towards clients whose requests go to another server, through middleware.
//!
//! ```text
//!   client ◀──▶ Front ◀──▶ Middleware … ◀──▶ External ◀──▶ server
//!           one hop                                  the next
//! ```
//!
//! Each hop is a whole endpoint of the protocol: it has ids, progress tokens, a revision and capabilities of its own
//! (R-CHN-06, R-CHN-07). Params and results are passed on as the bytes that were validated when they arrived (R-CHN-10).
//! A request of a client is exactly one request to the server, and has exactly one answer.
//!
//! | file | what it is for |
//! |---|---|
//! | `front`, `executor` | the side towards clients; connections of clients: which connection to the server a request takes |
//! | `carry`, `route`, `routes` | one call from its arrival to its answer; the calls that a connection carries |
//! | `passage`, `hop`, `trip` | which server a request is for; over which connection it goes; one request to it |
//! | `merged`, `streams`, `introduce` | what several servers answer together: lists, changes, what they offer |
//! | `pages`, `list_cache` | lists that servers allow to be kept |
//! | `hiding` | what a policy keeps from a client: entries of lists, changes of resources |
//! | `lane`, `lanes`, `lane_key`, `far`, `places`, `attempts`, `idle` | connections to the server: opened, lost and opened again, closed when idle; how many there are; which clients share one |
//! | `upstream` | requests and notifications of the server |
//! | `params`, `translate` | what a hop changes; what the eras say differently |
//! | `url_elicitation`, `visits` | the error by which a server of 2025-11-25 sends the user to pages |
//! | `given`, `kept` | states of servers of the stateless era, and the connections that are kept for them when a front has a successor |
//! | `asking` | questions of middleware to the client of a call |
//! | `question`, `rounds`, `listen`, `listeners`, `follow`, `own_streams` | questions and subscriptions, between the eras |
//! | `stream`, `held`, `filter` | how a stream of changes begins and ends, towards its client; what it is about |
//! | `doubts` | whether a server that refuses a request still is of the era of the connection |
//! | `behalf` | requests of this side's own, and on whose behalf they are made |
//! | `sessions` | what clients that share a connection have each asked for |
//! | `rules` | middleware of this crate: pins, masking, approval, a breaker, retries, reports |
//! | `handoff` | middleware whose decisions are made elsewhere, for bindings to other languages |
//! | `prefix` | a prefix for the names of a server |
//! | `middleware`, `external`, `health`, `parts`, `shared` | the parts that a program hands in, and what connections share |

mod asking;
mod attempts;
mod behalf;
mod carry;
mod declared;
mod doubts;
mod executor;
mod external;
mod far;
mod filter;
mod follow;
mod front;
mod given;
mod handoff;
mod health;
mod held;
mod hiding;
mod hop;
mod idle;
mod introduce;
mod kept;
mod lane;
mod lane_key;
mod lanes;
mod list_cache;
mod listen;
mod listeners;
mod merged;
mod middleware;
mod own_streams;
mod pages;
mod params;
mod parts;
mod passage;
mod places;
mod prefix;
mod question;
mod rounds;
mod route;
mod routes;
mod rules;
mod sessions;
mod shared;
mod stream;
mod streams;
mod translate;
mod trip;
mod unless;
mod upstream;
mod url_elicitation;
mod visits;

pub use external::{Connecting, External, Isolation, Link};
pub use front::Front;
pub use handoff::{Handoff, HandoffEvent, HandoffInterests};
pub use health::{UpstreamHealth, UpstreamState};
pub use middleware::{
    ChainAnswer, ChainNotice, ChainNotification, ChainRequest, ChainResponse, Middleware, NextHop,
    RelayDirection, refusal,
};
pub use prefix::Prefix;
pub use rules::{
    Approval, Breaker, CallReports, MaskedTexts, Masking, PinDrift, Pins, Retry, UpstreamCall,
    tool_pin,
};
#[cfg(feature = "settings")]
pub(crate) use rules::{MAX_FAILURES, MAX_REPEATS};
