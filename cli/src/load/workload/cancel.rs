//! Calls that are cancelled while they run.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::answer;
use super::call::head;
use super::echo::Echo;
use super::failure::Failure;
use super::link::Link;

/// How long the server may take to end calls that were cancelled.
const PATIENCE: Duration = Duration::from_secs(10);

/// Calls of `sleep`, each cancelled once the server has answered a later call of `echo`. The latency is that of `echo`.
#[derive(Debug)]
pub struct Cancellations {
    sleep: String,
    stats: String,
    echo: Echo,
    /// How many calls of `sleep` ran at the begin.
    before: OnceLock<u64>,
}

/// The answer of `stats`.
#[derive(Deserialize)]
struct Stats {
    active: u64,
}

impl Cancellations {
    pub fn new(prefix: &str) -> Self {
        let tool = |name: &str| head(&format!("{prefix}{name}"));
        Self {
            sleep: format!("{}{{\"ms\":600000}}}}", tool("sleep")),
            stats: format!("{}{{}}}}", tool("stats")),
            echo: Echo::new(&format!("{prefix}echo"), &[100]),
            before: OnceLock::new(),
        }
    }

    pub async fn prepare(&self, link: &Link<'_>) -> Result<(), Failure> {
        let active = self.active(link).await?;
        self.before.get_or_init(|| active);
        Ok(())
    }

    pub async fn one(&self, link: &Link<'_>, number: u64) -> Result<(), Failure> {
        let handle = link.client.handle();
        let sleep = handle.request("tools/call", Some(&self.sleep), link.options())?;
        let echoed = self.echo.one(link, number).await;
        sleep.cancel(Some("no longer wanted"));
        echoed
    }

    /// Waits until no cancelled call runs any more.
    pub async fn settle(&self, link: &Link<'_>) -> Result<(), Failure> {
        let before = self.before.get().copied().unwrap_or_default();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = self.active(link).await?.saturating_sub(before);
            match left {
                0 => return Ok(()),
                _ if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
                _ => {
                    let seconds = PATIENCE.as_secs();
                    return Err(Failure::wrong(format!(
                        "{left} cancelled calls still ran {seconds} s later"
                    )));
                }
            }
        }
    }

    async fn active(&self, link: &Link<'_>) -> Result<u64, Failure> {
        let answer = link.ask("tools/call", Some(&self.stats)).await?;
        let text = answer::text(&answer)?;
        let stats: Stats = serde_json::from_str(&text)
            .map_err(|error| Failure::wrong(format!("the answer of stats: {error}")))?;
        Ok(stats.active)
    }
}
