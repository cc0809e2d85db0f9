//! Calls that are cancelled while they run.

use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use mcpbolt::connection::Response;
use serde::Deserialize;

use super::answer;
use super::call::head;
use super::failure::Failure;
use super::link::Link;

/// How long the server may take to end calls that were cancelled.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the server is asked without a pause whether a call has started,
const SOON: Duration = Duration::from_millis(100);

/// and the pause from then on.
const PAUSE: Duration = Duration::from_millis(10);

/// Calls of `sleep`, each cancelled once `stats` tells that it has started: over HTTP, a cancellation could overtake a call
/// that has just been sent. The latency is the time up to then.
#[derive(Debug)]
pub struct Cancellations {
    sleep: String,
    stats: String,
    /// The calls of `sleep` that were sent, without those that have failed.
    sent: AtomicU64,
    cancelled: AtomicU64,
    /// The counts of the server before.
    before: OnceLock<Stats>,
}

/// The answer of `stats`, about calls of `sleep`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Stats {
    /// Those that run.
    active: u64,
    /// Those that have ever started.
    started: u64,
}

impl Cancellations {
    pub fn new(prefix: &str) -> Self {
        let tool = |name: &str| head(&format!("{prefix}{name}"));
        Self {
            sleep: format!("{}{{\"ms\":600000}}}}", tool("sleep")),
            stats: format!("{}{{}}}}", tool("stats")),
            sent: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            before: OnceLock::new(),
        }
    }

    pub async fn prepare(&self, link: &Link<'_>) -> Result<(), Failure> {
        let stats = self.stats(link).await?;
        self.before.get_or_init(|| stats);
        Ok(())
    }

    pub async fn one(&self, link: &Link<'_>) -> Result<(), Failure> {
        // Each is counted before it is sent: as soon as so many have started, this one has.
        let place = self.sent.fetch_add(1, SeqCst) + 1;
        let sleep = self.start(link, place).await.inspect_err(|_| {
            self.sent.fetch_sub(1, SeqCst);
        })?;
        sleep.cancel(Some("no longer wanted"));
        self.cancelled.fetch_add(1, SeqCst);
        Ok(())
    }

    /// Calls `sleep`, and waits until `stats` tells that so many have started.
    async fn start(&self, link: &Link<'_>, place: u64) -> Result<Response, Failure> {
        let begun = Instant::now();
        let handle = link.client.handle();
        let mut sleep = handle.request("tools/call", Some(&self.sleep), link.options())?;
        loop {
            let stats = pin!(self.stats(link));
            let stats = match select(&mut sleep, stats).await {
                Either::Left((ended, stats)) => {
                    // Waiting for it leaves no answer without a request.
                    let _ = stats.await;
                    answer::text(&link.taken(ended)?)?;
                    return Err(Failure::wrong("a call of sleep ended before its time"));
                }
                Either::Right((stats, _)) => stats.inspect_err(|_| link.gave_up())?,
            };
            // Without those that the server has refused in the meantime.
            let place = place.min(self.sent.load(SeqCst));
            if stats.started >= self.before().started + place {
                return Ok(sleep);
            }
            if begun.elapsed() > link.timeout {
                link.gave_up();
                return Err(Failure::unanswered("a call of sleep did not start"));
            }
            if begun.elapsed() > SOON {
                handle.sleep(PAUSE).await;
            }
        }
    }

    /// How many of these answers to nothing are those of cancelled calls, which the protocol allows. A server answers
    /// either all of them or none, apart from the last ones.
    pub fn late_answers(&self, strays: u64) -> u64 {
        let cancelled = self.cancelled.load(SeqCst);
        if strays >= cancelled / 2 {
            cancelled
        } else {
            0
        }
    }

    /// Waits until no cancelled call runs any more.
    pub async fn settle(&self, link: &Link<'_>) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let active = self.stats(link).await?.active;
            match active.saturating_sub(self.before().active) {
                0 => return Ok(()),
                _ if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
                left => {
                    let seconds = PATIENCE.as_secs();
                    return Err(Failure::wrong(format!(
                        "{left} cancelled calls still ran {seconds} s later"
                    )));
                }
            }
        }
    }

    fn before(&self) -> Stats {
        self.before.get().copied().unwrap_or_default()
    }

    async fn stats(&self, link: &Link<'_>) -> Result<Stats, Failure> {
        let answer = link.ask("tools/call", Some(&self.stats)).await?;
        let text = answer::text(&answer)?;
        serde_json::from_str(&text)
            .map_err(|error| Failure::wrong(format!("the answer of stats: {error}")))
    }
}
