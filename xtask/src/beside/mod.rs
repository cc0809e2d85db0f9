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
    Carrier, Http, Pipe, Revision, Server, Session, Start, Window, Workload, as_client, run as load,
};
use crate::machine;
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
    building.finish_and_clear();
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
            let outcome = as_client(|| play(subject, measure));
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

fn play(subject: &Subject, measure: &Measure<'_>) -> Result<Turn> {
    match subject.by {
        By::Stdio => {
            let mut session = Session::<Pipe>::open(&subject.start, Revision::Handshake)?;
            let turn = measured(&mut session, measure)?;
            session.close();
            Ok(turn)
        }
        By::Http => over_http(subject, Revision::Envelope, measure),
        By::Session => over_http(subject, Revision::Handshake, measure),
    }
}

fn over_http(subject: &Subject, revision: Revision, measure: &Measure<'_>) -> Result<Turn> {
    let port = free_port()?;
    let mut session = Session::<Http>::open_http(&subject.start, port, revision)?;
    measured(&mut session, measure)
}

fn measured<C: Carrier>(session: &mut Session<C>, measure: &Measure<'_>) -> Result<Turn> {
    let bytes = session.server.peak_bytes();
    let workload = Workload::echo(session.revision, TEXT_BYTES);
    let mut window = |in_flight, warm_up| {
        let window = Window {
            in_flight,
            length: measure.length,
            warm_up,
            at_least: 20,
        };
        let figures = load(session, &workload, window, &mut |_| {});
        match &figures.faults.first {
            Some(first) => bail!("{} wrong answers: {first}", figures.faults.total()),
            None => Ok(figures),
        }
    };
    let many = window(MANY, measure.warm_up)?;
    let alone = window(1, measure.length / 4)?;
    Ok(Turn {
        cpu: many.cpu_per_call,
        language: many.cpu_of_language,
        calls_per_second: many.calls_per_second,
        p50_alone: alone.p50,
        first_list: session.first_list,
        bytes,
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
