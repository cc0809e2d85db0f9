//! One server under attack, and the checks before and after each attack.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::case::{Carrier, Case, Setup};
use super::parts::Words;
use super::play::{Player, honest};
use super::target::{Place, Target};

/// How long a server may take to release what an attacker held.
const GIVEN_BACK: Duration = Duration::from_secs(60);
/// How many more descriptors a server may have than before an attack, as it opens some late.
const LATE_DESCRIPTORS: usize = 4;

/// A server that is attacked by one case after the other.
pub struct Besieged<'a> {
    words: &'a [String],
    carrier: Carrier,
    setup: Setup,
    server: Option<Target>,
    /// How often `touch` has run.
    touched: u64,
}

impl<'a> Besieged<'a> {
    /// The server starts when it is first needed.
    pub fn new(words: &'a [String], carrier: Carrier, setup: Setup) -> Self {
        Self {
            words,
            carrier,
            setup,
            server: None,
            touched: 0,
        }
    }

    /// Runs an attack and checks the server. After a failure, a new server replaces this one, so that its
    /// memory and counters do not affect the next attack.
    pub fn stand(&mut self, case: &Case) -> Result<()> {
        if self.carrier == Carrier::Stdio {
            let place = Place::Pipe(self.words.to_vec(), self.setup);
            let mut player = Player::new(&place, self.carrier, case, words());
            player.play()?;
            let ran = player.finish()?;
            honest(&place, self.carrier, self.setup).context("an honest call")?;
            return is_unmoved(case, ran);
        }
        if case.alone || self.setup == Setup::Quota {
            self.server = None;
        }
        let mut server = match self.server.take() {
            Some(server) => server,
            None => {
                self.touched = 0;
                Target::start(self.words, self.carrier, self.setup)?
            }
        };
        // The first call allocates what the server keeps for good, so it comes before any measurement.
        honest(&server.place, self.carrier, self.setup).context("before it")?;
        server.forget_peak();
        let (before, descriptors) = (server.memory().0, server.descriptors());
        let place = server.place.clone();
        let mut player = Player::new(&place, self.carrier, case, words());
        let played = player.play();
        let peak = server.memory().1;
        drop(player);
        played?;
        ensure!(server.is_alive(), "the server has ended");
        let stats = self.settled(&server, descriptors)?;
        let touched = stats["touched"].as_u64().unwrap_or_default();
        let ran = touched - self.touched;
        self.touched = touched;
        is_unmoved(case, ran)?;
        let grown = |now: u64| now.saturating_sub(before) >> 20;
        if let Some(most) = case.peak.filter(|most| grown(peak) > *most) {
            anyhow::bail!(
                "it grew by {} MiB, more than {most}, meanwhile",
                grown(peak)
            );
        }
        if let Some(most) = case.grows {
            let until = Instant::now() + GIVEN_BACK;
            while grown(server.memory().0) > most && Instant::now() < until {
                thread::sleep(Duration::from_millis(50));
            }
            let kept = grown(server.memory().0);
            ensure!(kept <= most, "it keeps {kept} MiB, more than {most}");
        }
        if !case.alone {
            self.server = Some(server);
        }
        Ok(())
    }

    /// Waits until all traces of the attacker are gone, and returns the counters that an honest client then gets.
    fn settled(&self, server: &Target, descriptors: usize) -> Result<Value> {
        let until = Instant::now() + GIVEN_BACK;
        loop {
            let stats =
                honest(&server.place, self.carrier, self.setup).context("an honest call")?;
            let held = server.descriptors().saturating_sub(descriptors);
            let active = stats["active"].as_u64().unwrap_or_default();
            if active == 0 && held <= LATE_DESCRIPTORS {
                return Ok(stats);
            }
            ensure!(
                Instant::now() < until,
                "{active} calls still run, {held} descriptors are still open"
            );
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Checks that `touch` ran no more often than allowed.
fn is_unmoved(case: &Case, ran: u64) -> Result<()> {
    ensure!(
        ran <= case.runs,
        "`touch` ran {ran} times, not {}",
        case.runs
    );
    Ok(())
}

/// The words for messages that many attacks send.
fn words() -> Words {
    let mut words = Words::default();
    let envelope = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}"#;
    words.set("envelope", envelope);
    words.set("meta", r#""_meta":{$envelope}"#);
    for (name, text) in [
        (
            "touch",
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"touch","arguments":{}}}"#,
        ),
        (
            "touch26",
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"touch","arguments":{},$meta}}"#,
        ),
        (
            "initialize",
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#,
        ),
        ("ping", r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#),
        (
            "upgrade",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ),
    ] {
        words.set(name, text);
        let length = words.put_into(text).len();
        words.set(&format!("{name}_length"), length.to_string());
    }
    words
}
