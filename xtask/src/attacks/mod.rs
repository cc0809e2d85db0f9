//! `cargo xtask attacks`: the corpus of attacks against a real server of each language, on each
//! carrier that it listens on.

mod answer;
pub mod case;
pub mod client;
pub mod frames;
pub mod h2;
mod parts;
mod play;
mod siege;
pub mod target;
mod wire;

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use self::case::{Carrier, Case, Setup};
use self::siege::Besieged;
use crate::columns::align;
use crate::diagnostic::{self, run_aside};
use crate::flood::{self, Flood};
use crate::language::Language;
use crate::repo::Build;

/// Attack the servers of each language with the corpus
///
/// Sends each attack of corpus/attacks over a raw connection to the diagnostic server of each
/// language, on each carrier of the attack. The answer must be the one in the corpus, the server
/// must neither run nor keep anything else, and an honest call must be answered afterwards.
#[derive(clap::Args)]
pub struct Args {
    /// Only the server of this language; may be given several times
    #[arg(long)]
    lang: Vec<Language>,
    /// Only on this carrier; may be given several times
    #[arg(long)]
    carrier: Vec<Carrier>,
    /// Only attacks whose names contain this
    #[arg(long, default_value = "")]
    only: String,
    /// Attack the server that this command line starts, with an address appended, instead of our
    /// server of the one given language
    #[arg(long, value_name = "WORDS")]
    program: Option<String>,
    /// List the attacks instead
    #[arg(long)]
    list: bool,
    /// Only this kind of attack
    #[arg(long)]
    part: Option<Part>,
    /// Build the servers quickly, with overflow checks and assertions
    #[arg(long)]
    debug: bool,
}

/// A kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// One attack after the other
    Corpus,
    /// Many hostile connections at once, for some seconds
    Flood,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut cases = case::load()?;
    cases.retain(|case| case.name.contains(&args.only));
    if args.list {
        for case in &cases {
            let carriers: Vec<_> = case.carriers.iter().map(|it| it.name()).collect();
            println!(
                "{:<44} {:<12} {}",
                case.name,
                case.class,
                carriers.join(" ")
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = |language: &Language| args.lang.is_empty() || args.lang.contains(language);
    let is_chosen = |carrier: Carrier| args.carrier.is_empty() || args.carrier.contains(&carrier);
    let carriers: Vec<_> = Carrier::ALL
        .into_iter()
        .filter(|it| is_chosen(*it))
        .collect();
    let languages: Vec<_> = Language::ALL.into_iter().filter(chosen).collect();
    let mut programs = Vec::new();
    for language in languages {
        let words = match &args.program {
            Some(words) => words.split_whitespace().map(str::to_owned).collect(),
            None => program(language, Build::asked(args.debug))?,
        };
        programs.push((language, words));
    }
    let has = |part| args.part.is_none_or(|only| only == part);
    let mut failed = 0;
    if has(Part::Corpus) {
        failed += play(&programs, &cases, &carriers)?;
    }
    if has(Part::Flood) && args.only.is_empty() && carriers.contains(&Carrier::Http) {
        let (table, noticed) = flood::run(&programs, Flood::BRIEF)?;
        print!("{table}");
        println!(
            "flood: {} passed, {noticed} failed",
            programs.len() * 2 - noticed
        );
        failed += noticed;
    }
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Plays the corpus. Returns how many attacks had an outcome other than the required one.
fn play(
    programs: &[(Language, Vec<String>)],
    cases: &[Case],
    carriers: &[Carrier],
) -> Result<usize> {
    let rows: Vec<Row> = thread::scope(|scope| {
        let all: Vec<_> = programs
            .iter()
            .map(|(language, words)| scope.spawn(|| attack(*language, words, cases, carriers)))
            .collect();
        let rows = all.into_iter().map(|row| row.join());
        rows.flatten().collect()
    });
    ensure!(rows.len() == programs.len(), "an attacker panicked");
    print!("{}", table(&rows, carriers));
    let failed: usize = rows.iter().map(|row| row.failures.len()).sum();
    let passed: usize = rows.iter().map(|row| row.played).sum::<usize>() - failed;
    println!("attacks: {passed} passed, {failed} failed");
    Ok(failed)
}

/// The command line of a diagnostic server, to which the address is appended.
pub fn program(language: Language, how: Build) -> Result<Vec<String>> {
    diagnostic::example(language, "diagnostic", "http,jwt", how, &mut run_aside)
}

/// The results of all attacks on the servers of one language.
struct Row {
    language: Language,
    played: usize,
    /// How many attacks ran on each carrier.
    counts: Vec<usize>,
    failures: Vec<(Carrier, String, anyhow::Error)>,
    /// The attack that took longest.
    longest: (Duration, String),
}

fn attack(language: Language, words: &[String], cases: &[Case], carriers: &[Carrier]) -> Row {
    let mut row = Row {
        language,
        played: 0,
        counts: vec![0; carriers.len()],
        failures: Vec::new(),
        longest: (Duration::ZERO, String::new()),
    };
    for (index, carrier) in carriers.iter().enumerate() {
        for setup in Setup::OF_CORPUS {
            let mut besieged = Besieged::new(words, *carrier, setup);
            let its = |case: &&Case| case.carriers.contains(carrier) && case.server == setup;
            for case in cases.iter().filter(its) {
                row.played += 1;
                row.counts[index] += 1;
                let begin = Instant::now();
                let stood = besieged.stand(case);
                let name = format!("{} on {}", case.name, carrier.name());
                if begin.elapsed() > row.longest.0 {
                    row.longest = (begin.elapsed(), name.clone());
                }
                if let Err(error) = stood {
                    // The table is printed at the end, so failures are printed at once.
                    eprintln!("{} {name}: {error:#}", language.name());
                    row.failures
                        .push((*carrier, format!("{} ({})", case.name, case.why), error));
                }
            }
        }
    }
    row
}

fn table(rows: &[Row], carriers: &[Carrier]) -> String {
    let mut head = vec!["attacked".to_owned()];
    head.extend(carriers.iter().map(|carrier| carrier.name().to_owned()));
    let mut cells = vec![head];
    let mut notes = String::new();
    for row in rows {
        let mut line = vec![format!("mcpbolt {}", row.language.name())];
        for (index, carrier) in carriers.iter().enumerate() {
            let of_it = row.failures.iter().filter(|(on, ..)| on == carrier);
            let (all, failed) = (row.counts[index], of_it.count());
            line.push(match failed {
                0 => format!("{all} refused"),
                _ => format!("{failed} of {all} FAILED"),
            });
        }
        cells.push(line);
        let (time, name) = &row.longest;
        notes += &format!(
            "{}: {name} took longest, {:.1} s\n",
            row.language.name(),
            time.as_secs_f64()
        );
        for (carrier, name, error) in &row.failures {
            let (language, carrier) = (row.language.name(), carrier.name());
            notes += &format!("{language} {carrier} {name}: {error:#}\n");
        }
    }
    align_rows(&cells) + &notes
}

/// Like [`align`], for any number of columns.
fn align_rows(cells: &[Vec<String>]) -> String {
    let padded: Vec<[String; 6]> = cells
        .iter()
        .map(|row| std::array::from_fn(|at| row.get(at).cloned().unwrap_or_default()))
        .collect();
    align(&padded, 1)
}
