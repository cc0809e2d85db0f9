//! Calls that are cancelled while they run.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::answer;
use super::call::head;
use super::failure::Failure;
use super::link::Link;

/// How long the server may take to end calls that were cancelled.
const PATIENCE: Duration = Duration::from_secs(10);

/// Calls of `sleep`, each cancelled once `stats` tells that it has started: over HTTP, a cancellation could overtake a call
/// that has just been sent. The latency is the time up to then.
#[derive(Debug)]
pub struct Cancellations {
    sleep: String,
    stats: String,
    /// The calls of `sleep` that were sent.
    sent: AtomicU64,
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
            before: OnceLock::new(),
        }
    }

    pub async fn prepare(&self, link: &Link<'_>) -> Result<(), Failure> {
        let stats = self.stats(link).await?;
        self.before.get_or_init(|| stats);
        Ok(())
    }

    pub async fn one(&self, link: &Link<'_>) -> Result<(), Failure> {
        let begun = Instant::now();
        let handle = link.client.handle();
        // Each is counted before it is sent: as soon as so many have started, this one has.
        self.sent.fetch_add(1, SeqCst);
        let sleep = handle.request("tools/call", Some(&self.sleep), link.options());
        let sleep = sleep.inspect_err(|_| {
            self.sent.fetch_sub(1, SeqCst);
        })?;
        let sent = self.before().started + self.sent.load(SeqCst);
        while self.stats(link).await?.started < sent {
            if begun.elapsed() > link.timeout {
                return Err(Failure::unanswered("a call of sleep did not start"));
            }
        }
        sleep.cancel(Some("no longer wanted"));
        Ok(())
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
