//! The requests of a load, and what their answers must be.

mod answer;
mod call;
mod cancel;
mod echo;
mod failure;
mod link;
mod list;
mod listen;
mod progress;
mod sampling;
mod template;
mod texts;
mod trace;

use anyhow::{Result, bail, ensure};
use mcpbolt::client::ClientBuilder;

pub use self::call::Calls;
pub use self::cancel::Cancellations;
pub use self::echo::{Echo, SIZES};
pub use self::failure::Failure;
pub use self::link::Link;
pub use self::list::Lists;
pub use self::listen::Subscriptions;
pub use self::progress::Reports;
pub use self::sampling::{Samplings, TOOL as SAMPLING_TOOL};
pub use self::texts::MARK_BYTES;
pub use self::trace::Replay;

/// Requests of one kind, and the check of their answers.
#[derive(Debug)]
pub enum Workload {
    Calls(Calls),
    Echo(Echo),
    Lists(Lists),
    Reports(Reports),
    Cancellations(Cancellations),
    Subscriptions(Subscriptions),
    Samplings(Samplings),
    Replay(Replay),
}

impl Workload {
    /// A client that offers what the requests need.
    pub fn client(&self, client: ClientBuilder) -> ClientBuilder {
        match self {
            Self::Samplings(_) | Self::Replay(_) => sampling::with_model(client),
            _ => client,
        }
    }

    /// Looks whether the server has what the requests need.
    pub async fn prepare(&self, link: &Link<'_>) -> Result<()> {
        match self {
            Self::Calls(calls) => has_tool(link, calls.tool()).await,
            Self::Cancellations(cancellations) => match cancellations.prepare(link).await {
                Ok(()) => Ok(()),
                Err(failure) => bail!("the tools sleep and stats: {}", failure.why),
            },
            Self::Subscriptions(subscriptions) => subscriptions.prepare(link),
            _ => Ok(()),
        }
    }

    /// Sends one request, or a few that belong together, and checks the answer.
    ///
    /// The usual ones are small futures; the others are boxed, so that those stay small.
    pub async fn one(&self, link: &Link<'_>, number: u64) -> Result<(), Failure> {
        match self {
            Self::Echo(echo) => echo.one(link, number).await,
            Self::Calls(calls) => Box::pin(calls.one(link, number)).await,
            Self::Lists(lists) => Box::pin(lists.one(link)).await,
            Self::Reports(reports) => Box::pin(reports.one(link)).await,
            Self::Cancellations(them) => Box::pin(them.one(link)).await,
            Self::Subscriptions(them) => Box::pin(them.one(link)).await,
            Self::Samplings(them) => Box::pin(them.one(link, number)).await,
            Self::Replay(replay) => Box::pin(replay.one(link, number)).await,
        }
    }

    /// Looks whether the server is as it was before.
    pub async fn settle(&self, link: &Link<'_>) -> Result<(), Failure> {
        match self {
            Self::Cancellations(cancellations) => cancellations.settle(link).await,
            _ => Ok(()),
        }
    }

    /// How many answers to nothing were to be expected, of so many.
    pub fn late_answers(&self, strays: u64) -> u64 {
        match self {
            Self::Cancellations(cancellations) => cancellations.late_answers(strays),
            _ => 0,
        }
    }

    /// How many kinds of requests take turns, by their numbers.
    pub fn kinds(&self) -> usize {
        match self {
            Self::Echo(echo) => echo.kinds(),
            Self::Replay(replay) => replay.kinds(),
            _ => 1,
        }
    }
}

/// Fails if the server lists tools, but not this one.
async fn has_tool(link: &Link<'_>, tool: &str) -> Result<()> {
    let Ok(names) = list::names(link).await else {
        return Ok(());
    };
    ensure!(
        names.iter().any(|name| name == tool),
        "the server has no tool {tool:?}; it has {}",
        match names.as_slice() {
            [] => "none".to_owned(),
            names => names.join(", "),
        }
    );
    Ok(())
}
