//! `cargo xtask bench --lang …`: compares a package with the other MCP packages of its language.
//!
//! All servers take turns, round after round, and every answer is checked. The main figure is the CPU
//! time of the server's process for one call, which does not include waiting on a busy machine.

mod node;
mod python;
mod subject;
mod table;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use self::subject::{By, Probe, Subject, Subjects};
use self::table::{Cost, Row};
use crate::language::Language;
use crate::load::{
    Calls, Carrier, Generator, Http, Load, Pipe, Revision, Server, Session, Start, To, as_client,
};
use crate::log::Log;
use crate::machine;
use crate::repo::Build;
use crate::stage::spinner;

/// The length of the echoed text, in bytes.
const TEXT_BYTES: usize = 100;
/// Calls in flight when throughput is measured.
const MANY: usize = 32;

/// The servers to measure, and for how long.
pub struct Measure<'a> {
    pub rounds: usize,
    pub length: Duration,
    pub warm_up: Duration,
    /// Only servers whose name contains this.
    pub only: &'a str,
    pub json: Option<&'a Path>,
    /// Use packages that are built quickly: to try the program, not for figures.
    pub debug: bool,
}

/// Builds what is missing, measures, and prints the table.
pub fn run(language: Language, measure: &Measure<'_>) -> Result<()> {
    let building = spinner(&format!(
        "building what {} is measured with",
        language.name()
    ));
    let subjects = match language {
        Language::Python => python::subjects(measure.debug),
        Language::Node => node::subjects(measure.debug),
        Language::Rust => bail!("the engine has parts that are measured: name one of them"),
    };
    let generator = generator(Build::asked(measure.debug));
    building.finish_and_clear();
    let generator = generator?;
    let Subjects { servers, probes } = subjects?;
    let chosen = |name: &str| name.contains(measure.only);
    let mut servers: Vec<_> = servers.into_iter().filter(|s| chosen(s.name)).collect();
    let mut rows: Vec<_> = servers.iter().map(Row::new).collect();
    let mut costs: Vec<_> = probes.iter().map(Cost::new).collect();
    for round in 0..measure.rounds {
        for at in 0..servers.len() {
            // The first server of a round has an advantage, so each round begins with another one.
            let at = (at + round * 7) % servers.len();
            let subject = &mut servers[at];
            let turn = spinner(&format!(
                "round {} of {}: {}, {}",
                round + 1,
                measure.rounds,
                subject.name,
                subject.by.name()
            ));
            let outcome = as_client(|| play(subject, measure, &generator));
            turn.finish_and_clear();
            rows[at].note(outcome);
        }
        for (probe, cost) in probes.iter().zip(&mut costs) {
            cost.note(as_client(|| begin(probe))?);
        }
    }
    let what = format!(
        "echo of {TEXT_BYTES} B, medians of {} rounds of {:.1} s{}",
        measure.rounds,
        measure.length.as_secs_f64(),
        if measure.debug {
            ", PACKAGES BUILT FOR TESTS"
        } else {
            ""
        }
    );
    println!("{}\n", machine::describe(&what));
    print!("{}", table::text(&rows, &costs));
    if let Some(file) = measure.json {
        std::fs::write(file, table::json_lines(&rows, &costs))?;
    }
    ensure!(
        rows.iter().all(Row::is_clean),
        "not every server was there and answered rightly"
    );
    Ok(())
}

/// The figures of one turn of one server.
struct Turn {
    cpu: Duration,
    language: Option<Duration>,
    calls_per_second: f64,
    p50_alone: Duration,
    first_list: Duration,
    bytes: u64,
}

fn generator(how: Build) -> Result<Generator> {
    let mut log = Log::create("bench-load", false)?;
    let built = Generator::build(how, &mut |command| log.run(command));
    if built.is_err() {
        log.show_tail();
    }
    built
}

fn play(subject: &Subject, measure: &Measure<'_>, generator: &Generator) -> Result<Turn> {
    let start = &subject.start;
    let revision = match subject.by {
        By::Stdio | By::Session => Revision::Handshake,
        By::Http => Revision::Envelope,
    };
    if subject.by == By::Stdio {
        // Each load has a process of its own; this one tells how the server begins.
        let session = Session::<Pipe>::open(start, revision)?;
        let begun = Begun::of(&session);
        session.close();
        return measured(begun, &To::Command(start), revision, measure, generator);
    }
    let port = free_port()?;
    let session = Session::<Http>::open_http(start, port, revision)?;
    let process = session.server.id();
    let to = To::Running { port, process };
    measured(Begun::of(&session), &to, revision, measure, generator)
}

/// A server that has just begun.
struct Begun {
    first_list: Duration,
    bytes: u64,
}

impl Begun {
    fn of<C: Carrier>(session: &Session<C>) -> Self {
        Self {
            first_list: session.first_list,
            bytes: session.server.peak_bytes(),
        }
    }
}

fn measured(
    begun: Begun,
    to: &To<'_>,
    revision: Revision,
    measure: &Measure<'_>,
    generator: &Generator,
) -> Result<Turn> {
    let load = |in_flight, warm_up| {
        let load = Load {
            revision,
            calls: Calls::Echo(TEXT_BYTES),
            in_flight,
            length: measure.length,
            warm_up,
        };
        let figures = generator.run(to, &load)?;
        match &figures.faults.first {
            Some(first) => bail!("{} wrong answers: {first}", figures.faults.count),
            None => Ok(figures),
        }
    };
    let many = load(MANY, measure.warm_up)?;
    // A process of its own has to warm up again.
    let alone = match to {
        To::Command(_) => load(1, measure.warm_up)?,
        To::Running { .. } => load(1, measure.length / 4)?,
    };
    Ok(Turn {
        cpu: many.cpu_per_call,
        language: Some(many.cpu_of_language).filter(|cpu| !cpu.is_zero()),
        calls_per_second: many.calls_per_second,
        p50_alone: alone.p50,
        first_list: begun.first_list,
        bytes: begun.bytes,
    })
}

/// The CPU time and memory of a program when it writes its first line.
fn begin(probe: &Probe) -> Result<(Duration, u64)> {
    let start = Start {
        words: probe.words.clone(),
        ..Start::default()
    };
    let (server, to, from) = Server::start(&start)?;
    let mut pipe = Pipe::new(to, from)?;
    let mut has_begun = false;
    for _ in 0..100 {
        pipe.turn(Duration::from_millis(200), &mut |_| has_begun = true)?;
        if has_begun {
            return Ok((server.cpu(), server.peak_bytes()));
        }
    }
    bail!("{} does not begin", probe.name)
}

/// A free port.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
