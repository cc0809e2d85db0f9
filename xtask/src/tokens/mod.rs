//! `cargo xtask tokens`: the corpus of tokens and proofs against a resource server of each language.

mod authority;
mod case;
mod mint;
mod play;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use self::authority::Authority;
use self::case::Corpus;
use self::mint::Keys;
use crate::diagnostic::{self, run_aside};
use crate::language::Language;
use crate::process;
use crate::repo::Build;

/// How long a server may take to start.
const START: Duration = Duration::from_secs(60);

/// Send the corpus of tokens to a resource server of each language
///
/// Starts an authorization server, and for each policy of corpus/tokens.json a server of each language.
/// Each answer must be the one in the corpus.
#[derive(clap::Args)]
pub struct Args {
    /// Only the server of this language; may be given several times
    #[arg(long)]
    lang: Vec<Language>,
    /// Only cases whose names contain this
    #[arg(long, default_value = "")]
    only: String,
    /// Send it to the server that this command line starts, with an address appended, instead of our server of
    /// the one given language
    #[arg(long, value_name = "WORDS")]
    program: Option<String>,
    /// Build the servers quickly, with overflow checks and assertions
    #[arg(long)]
    debug: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut corpus = case::load()?;
    corpus.cases.retain(|case| case.name.contains(&args.only));
    let keys = Arc::new(Keys::new()?);
    let chosen = |language: &Language| args.lang.is_empty() || args.lang.contains(language);
    let mut programs = Vec::new();
    for language in Language::ALL.into_iter().filter(chosen) {
        let words = match &args.program {
            Some(words) => words.split_whitespace().map(str::to_owned).collect(),
            None => program(language, Build::asked(args.debug))?,
        };
        programs.push((language, words));
    }
    let failed: Vec<Result<usize>> = thread::scope(|scope| {
        let all: Vec<_> = programs
            .iter()
            .map(|(language, words)| scope.spawn(|| play(*language, words, &corpus, &keys)))
            .collect();
        all.into_iter().filter_map(|one| one.join().ok()).collect()
    });
    ensure!(failed.len() == programs.len(), "a thread panicked");
    let failed = failed.into_iter().sum::<Result<usize>>()?;
    let all = corpus.cases.len() * programs.len();
    println!("tokens: {} passed, {failed} failed", all - failed);
    Ok(ExitCode::from(u8::from(failed > 0)))
}

fn program(language: Language, how: Build) -> Result<Vec<String>> {
    diagnostic::example(
        language,
        "resource_server",
        "resource-server",
        how,
        &mut run_aside,
    )
}

/// Plays the corpus against the servers of one language. Returns how many cases failed.
fn play(language: Language, words: &[String], corpus: &Corpus, keys: &Arc<Keys>) -> Result<usize> {
    let mut failed = 0;
    for (name, policy) in &corpus.servers {
        let cases = || corpus.cases.iter().filter(|case| case.server == *name);
        if cases().next().is_none() {
            continue;
        }
        let authority = Authority::start(keys)?;
        let policy = mint::filled(policy, &authority.issuer, None);
        let server = Server::start(words, &policy)?;
        for case in cases() {
            if let Err(error) = play::play(case, server.at, keys, &authority) {
                eprintln!("{} {}: {error:#}", language.name(), case.name);
                failed += 1;
            }
        }
    }
    Ok(failed)
}

/// A running server. Dropping it ends it.
struct Server {
    child: Child,
    at: SocketAddr,
}

impl Server {
    fn start(words: &[String], policy: &Value) -> Result<Self> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("http://127.0.0.1:0/mcp");
        command.env("MCP_POLICY", policy.to_string());
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("starting {}", words[0]))?;
        let stderr = child.stderr.take().context("no stderr")?;
        let (said, hear) = mpsc::channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
            let _ = said.send(lines.next());
            // Later output must be read, or a full pipe would block the server.
            lines.for_each(|line| eprintln!("{line}"));
        });
        let mut server = Self {
            child,
            at: ([127, 0, 0, 1], 0).into(),
        };
        let line = hear.recv_timeout(START)?.unwrap_or_default();
        let place = line
            .split("http://")
            .nth(1)
            .and_then(|it| it.split('/').next());
        let place = place.with_context(|| format!("the server said {line:?}"))?;
        server.at = place.parse()?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            process::kill_tree(self.child.id());
            let _ = self.child.wait();
        }
    }
}
