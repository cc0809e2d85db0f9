//! `cargo xtask conformance`: the official conformance suite against our servers and clients.

mod fixture;
mod suite;

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Result, ensure};

use self::fixture::{Fixture, Through};
use self::suite::{Score, Suite};
use crate::diagnostic::run_aside;
use crate::language::Language;
use crate::python::Run;
use crate::repo::Build;

/// Run the official conformance suite against our servers and clients on HTTP
///
/// Installs the suite, and the Node.js that it needs, into .cache/conformance, and prints how many
/// scenarios of each set pass.
#[derive(clap::Args)]
pub struct Args {
    /// Only this language; may be given several times
    #[arg(long, value_enum)]
    lang: Vec<Language>,
    /// Only this set of scenarios; may be given several times
    #[arg(long, value_enum)]
    set: Vec<Set>,
    /// Only the sets that every change must pass: the two sets of requirements for servers, and all
    /// scenarios for clients at the same time
    #[arg(long, conflicts_with = "set")]
    required: bool,
    /// Reach the servers through this program; with the sets of scenarios for servers
    #[arg(long, value_enum)]
    through: Option<Through>,
    /// Build with optimisation
    #[arg(long)]
    release: bool,
}

/// A set of scenarios.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Set {
    /// The requirements for servers of 2025-11-25
    #[value(name = "2025-11-25")]
    Handshake,
    /// The requirements for servers of 2026-07-28
    #[value(name = "2026-07-28")]
    Stateless,
    /// All scenarios for servers, including extensions
    All,
    /// All scenarios for servers, in the stable release of the suite
    Stable,
    /// All scenarios for clients, one by one, in each revision
    Client,
    /// All scenarios for clients at the same time
    ClientTogether,
    /// All scenarios for clients, in the stable release of the suite
    ClientStable,
}

impl Set {
    const REQUIRED: [Self; 3] = [Self::Handshake, Self::Stateless, Self::ClientTogether];

    const EVERY: [Self; 7] = [
        Self::Handshake,
        Self::Stateless,
        Self::All,
        Self::Stable,
        Self::Client,
        Self::ClientTogether,
        Self::ClientStable,
    ];

    fn is_of_servers(self) -> bool {
        matches!(
            self,
            Self::Handshake | Self::Stateless | Self::All | Self::Stable
        )
    }

    fn name(self) -> &'static str {
        match self {
            Self::Handshake => "server, 2025-11-25",
            Self::Stateless => "server, 2026-07-28",
            Self::All => "server, all",
            Self::Stable => "server, all, stable release",
            Self::Client => "client",
            Self::ClientTogether => "client, together",
            Self::ClientStable => "client, stable release",
        }
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let languages = or_all(&args.lang, &Language::ALL);
    let mut sets = match args.required {
        true => Set::REQUIRED.to_vec(),
        false => or_all(&args.set, &Set::EVERY),
    };
    if args.through.is_some() {
        sets.retain(|set| set.is_of_servers());
    }
    let how = Build::asked(!args.release);
    let total = run_sets(args, (&languages, &sets), how, &mut run_aside)?;
    let failed = total.scenarios - total.passed;
    println!("{} passed, {failed} failed", total.passed);
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Runs the sets of each language and prints a line for each. Returns all scores.
fn run_sets(
    args: &Args,
    (languages, sets): (&[Language], &[Set]),
    how: Build,
    run: Run<'_>,
) -> Result<Score> {
    let capture: Capture<'_> = &mut |command| {
        let output = command.output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8_lossy(&said).into_owned())
    };
    let suite = Suite::install(run)?;
    let mut total = Score::default();
    for &language in languages {
        let fixture = Fixture::build(language, how, args.through, run)?;
        for &set in sets {
            let begun = Instant::now();
            let score = match set {
                Set::Client | Set::ClientStable => suite.clients(&fixture, set, capture)?,
                Set::ClientTogether => suite.clients_together(&fixture, capture)?,
                _ => suite.server(&fixture, set, capture)?,
            };
            ensure!(score.scenarios > 0, "{}: nothing was run", set.name());
            println!(
                "{:<7} {:<28} {score}  {:>5.1} s",
                format!("{language:?}"),
                set.name(),
                begun.elapsed().as_secs_f64()
            );
            for (name, said) in &score.failures {
                println!("    {name}: {said}");
            }
            total += score;
        }
    }
    Ok(total)
}

/// Runs a command and returns its output.
pub type Capture<'a> = &'a mut dyn FnMut(&mut Command) -> Result<String>;

fn or_all<T: Copy>(chosen: &[T], all: &[T]) -> Vec<T> {
    match chosen.is_empty() {
        true => all.to_vec(),
        false => chosen.to_vec(),
    }
}
