//! A hostile flood beside honest clients: measures how it affects their calls and the server's memory.

mod attackers;
pub mod honest;
mod scripts;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use self::attackers::{Done, attack};
use self::honest::Told;
use crate::attacks::case::{Carrier, Setup};
use crate::attacks::client::Client;
use crate::attacks::program;
use crate::attacks::target::Target;
use crate::columns::{align, millis};
use crate::language::Language;
use crate::log::Log;
use crate::repo::Build;

/// The default bound of what a server holds for its clients, and a fifth more.
const MOST_GROWTH: u64 = (256 << 20) / 5 * 6;
/// The largest ratio of the server's memory after the last attack to that after the first.
const MOST_LEFT: f64 = 1.1;
/// A latency that is always acceptable.
const QUICK: Duration = Duration::from_millis(50);
/// How long a server may take to release what attackers held.
const SETTLES: Duration = Duration::from_secs(5);
/// The variable that sets the length of each attack, in seconds.
const SECONDS: &str = "MCPBOLT_FLOOD_SECONDS";
/// The variable that names the only language whose server is flooded.
const LANGUAGE: &str = "MCPBOLT_FLOOD_LANGUAGE";

/// The size of a flood.
#[derive(Clone, Copy)]
pub struct Flood {
    pub connections: usize,
    pub clients: usize,
    pub length: Duration,
    pub attacks: usize,
    /// Whether latencies are checked, not only reported: for release builds.
    pub is_timed: bool,
}

impl Flood {
    /// The flood of `cargo xtask soak`.
    pub const WHOLE: Self = Self {
        connections: 2000,
        clients: 20,
        length: Duration::from_secs(60),
        attacks: 3,
        is_timed: true,
    };
    /// The flood of the tests.
    pub const BRIEF: Self = Self {
        connections: 200,
        clients: 4,
        length: Duration::from_secs(4),
        attacks: 1,
        is_timed: false,
    };
}

/// The addresses of the attackers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Others,
    /// The address of the honest clients.
    Same,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::Others => "127.0.0.2 to .9",
            Self::Same => "127.0.0.1",
        }
    }

    fn addresses(self) -> Vec<Ipv4Addr> {
        match self {
            Self::Others => (2..=9).map(|last| Ipv4Addr::new(127, 0, 0, last)).collect(),
            Self::Same => vec![Ipv4Addr::LOCALHOST],
        }
    }
}

/// The stage `flood` of `cargo xtask soak`.
pub fn stage(log: &mut Log) -> Result<()> {
    let mut flood = Flood::WHOLE;
    if let Ok(seconds) = std::env::var(SECONDS) {
        flood.length = Duration::from_secs(seconds.parse().context(SECONDS)?);
    }
    let mut programs = Vec::new();
    let only = std::env::var(LANGUAGE).ok();
    let chosen = |language: &Language| only.as_deref().is_none_or(|only| only == language.name());
    for language in Language::ALL.into_iter().filter(chosen) {
        programs.push((language, program(language, Build::Release)?));
    }
    ensure!(!programs.is_empty(), "{LANGUAGE} is rust, python or node");
    let (table, failures) = run(&programs, flood)?;
    log.line(&table)?;
    println!("{table}");
    ensure!(failures == 0, "{failures} floods were noticed");
    Ok(())
}

/// Floods the server of each language. Returns a table, and the number of floods with faults.
pub fn run(programs: &[(Language, Vec<String>)], flood: Flood) -> Result<(String, usize)> {
    raise_descriptors()?;
    let mut cells = vec![
        [
            "flooded",
            "from",
            "opened",
            "core",
            "calls",
            "failed",
            "p99 quiet",
            "p99",
            "most",
            "after 1",
            "after last",
            "",
        ]
        .map(str::to_owned),
    ];
    let mut notes = String::new();
    let mut failures = 0;
    for (language, words) in programs {
        for source in [Source::Others, Source::Same] {
            let outcome = one(words, source, flood)
                .with_context(|| format!("{} from {}", language.name(), source.name()))?;
            let wrong = outcome.faults(flood);
            failures += usize::from(!wrong.is_empty());
            for fault in &wrong {
                notes += &format!("{} from {}: {fault}\n", language.name(), source.name());
            }
            cells.push(outcome.row(*language, source, wrong.is_empty()));
        }
    }
    Ok((align(&cells, 2) + &notes, failures))
}

/// The results of one server.
struct Outcome {
    quiet: Duration,
    told: Told,
    done: Done,
    idle: u64,
    most: u64,
    /// The server's memory after each attack, in bytes.
    left: Vec<u64>,
}

fn one(words: &[String], source: Source, flood: Flood) -> Result<Outcome> {
    let mut server = Target::start(words, Carrier::Http, Setup::Plain)?;
    let to = match &server.place {
        crate::attacks::target::Place::Socket(address) => attackers::v4(*address),
        _ => None,
    };
    let to = to.context("the server listens on no address of IPv4")?;
    let place = server.place.clone();
    let mut clients: Vec<Client> = (0..flood.clients)
        .map(|_| honest::open(&place, None))
        .collect::<Result<_>>()?;
    // If the attackers have other addresses, a client can begin new sessions. If they share its address,
    // it may not, but its existing session must keep working.
    let renews = source == Source::Others;
    let quiet_time = flood.length.min(Duration::from_secs(5));
    let quiet = beside(&server, &mut clients, renews, quiet_time, None).told;
    if let Some(failure) = quiet.failures.first() {
        bail!("before any attack: {failure}");
    }
    let idle = server.memory().0;
    let mut outcome = Outcome {
        quiet: quiet.p99(),
        told: Told::default(),
        done: Done::default(),
        idle,
        most: idle,
        left: Vec::new(),
    };
    let from = source.addresses();
    for _ in 0..flood.attacks {
        let attack = Some((to, &*from, flood.connections));
        let round = beside(&server, &mut clients, renews, flood.length, attack);
        ensure!(server.is_alive(), "the server has ended");
        outcome.told.add(round.told);
        outcome.most = outcome.most.max(round.most);
        outcome.done.connections += round.done.connections;
        outcome.done.bytes += round.done.bytes;
        outcome.done.part = outcome.done.part.max(round.done.part);
        thread::sleep(SETTLES);
        outcome.left.push(server.memory().0);
    }
    Ok(outcome)
}

/// The results of one time span.
struct Round {
    told: Told,
    done: Done,
    most: u64,
}

type Attack<'a> = (std::net::SocketAddrV4, &'a [Ipv4Addr], usize);

/// Lets the clients call for `length`, beside attackers if there are any.
fn beside(
    server: &Target,
    clients: &mut [Client],
    renews: bool,
    length: Duration,
    hostile: Option<Attack<'_>>,
) -> Round {
    let stop = &AtomicBool::new(false);
    let place = &server.place;
    thread::scope(|scope| {
        let attackers =
            hostile.map(|(to, from, count)| scope.spawn(move || attack(to, from, count, stop)));
        let honest: Vec<_> = clients
            .iter_mut()
            .map(|client| scope.spawn(move || honest::call(client, place, renews, stop)))
            .collect();
        let (begin, mut most) = (Instant::now(), 0);
        while begin.elapsed() < length {
            most = most.max(server.memory().0);
            thread::sleep(Duration::from_millis(100));
        }
        stop.store(true, Relaxed);
        let mut told = Told::default();
        for client in honest {
            match client.join() {
                Ok(its) => told.add(its),
                Err(_) => told.failures.push("a client panicked".into()),
            }
        }
        let done = attackers.and_then(|attackers| attackers.join().ok());
        Round {
            told,
            done: done.unwrap_or_default(),
            most,
        }
    })
}

impl Outcome {
    /// The violated requirements.
    fn faults(&self, flood: Flood) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some(first) = self.told.failures.first() {
            faults.push(format!(
                "{} honest calls failed: {first}",
                self.told.failures.len()
            ));
        }
        let grown = self.most.saturating_sub(self.idle);
        if grown > MOST_GROWTH {
            let most = MOST_GROWTH >> 20;
            faults.push(format!("it grew by {} MiB, more than {most}", grown >> 20));
        }
        if let [first, .., last] = self.left[..]
            && last as f64 > first as f64 * MOST_LEFT
        {
            let (first, last) = (first >> 20, last >> 20);
            faults.push(format!(
                "{first} MiB after the first attack, {last} after the last"
            ));
        }
        let longest = (self.quiet * 3).max(QUICK);
        let p99 = self.told.p99();
        if flood.is_timed && p99 > longest {
            faults.push(format!(
                "the p99 is {}, more than {}",
                millis(p99),
                millis(longest)
            ));
        }
        faults
    }

    fn row(&self, language: Language, source: Source, is_clean: bool) -> [String; 12] {
        let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
        let grown = |bytes: u64| mib(bytes.saturating_sub(self.idle));
        let left = |at: Option<&u64>| at.map_or_else(String::new, |bytes| mib(*bytes));
        [
            format!("mcpbolt {}", language.name()),
            source.name().to_owned(),
            self.done.connections.to_string(),
            format!("{:.0} %", self.done.part * 100.0),
            self.told.calls.to_string(),
            self.told.failures.len().to_string(),
            millis(self.quiet),
            millis(self.told.p99()),
            format!("+{}", grown(self.most)),
            left(self.left.first()),
            left(self.left.last()),
            if is_clean { "ok" } else { "FAILED" }.to_owned(),
        ]
    }
}

/// Raises the descriptor limit of this process, and so of its servers, to the system's maximum.
fn raise_descriptors() -> Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    Ok(())
}
