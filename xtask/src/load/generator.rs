//! `mcpbolt load`, the load generator of this repository, on servers that are compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::cores;
use super::server::Start;
use super::wire::{Revision, shorten};
use crate::repo::{self, Build, cargo};

/// Fewer calls give no figures.
const LEAST_CALLS: u64 = 20;

/// The built command.
pub struct Generator {
    program: PathBuf,
}

/// The server of a load.
pub enum To<'a> {
    /// One that the load starts, with pipes.
    Command(&'a Start),
    /// One that listens on a port of this machine.
    Running { port: u16, process: u32 },
}

/// A closed loop: a constant number of calls in flight, for a set time.
#[derive(Clone, Copy)]
pub struct Load {
    pub revision: Revision,
    pub calls: Calls,
    pub in_flight: usize,
    /// The measured time, once the warm-up is over.
    pub length: Duration,
    pub warm_up: Duration,
}

/// The calls of a load.
#[derive(Clone, Copy)]
pub enum Calls {
    /// `echo` of a text of so many bytes, unique to the call.
    Echo(usize),
    /// `progress(n)`: n notifications, then the answer.
    Progress(u32),
}

/// The results of a load.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Correctly answered calls in the measured time.
    pub calls: u64,
    pub calls_per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
    /// The server's CPU time for one call, with its descendants.
    pub cpu_per_call: Duration,
    /// The part of it in threads that may run the server's language.
    pub cpu_of_language: Duration,
    /// The most memory the server held.
    pub peak_bytes: u64,
    pub faults: Faults,
}

/// Wrong answers, with the first failure as a sample.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub count: u64,
    pub first: Option<String>,
}

impl Faults {
    /// Keeps the description of a fault if it is the first.
    pub fn tell(&mut self, story: impl Into<String>) {
        self.first.get_or_insert_with(|| story.into());
    }

    /// Adds the faults of another load.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        if let Some(story) = other.first {
            self.tell(story);
        }
    }
}

/// The part of the report that is of use here.
#[derive(Deserialize)]
struct Report {
    calls: u64,
    errors: u64,
    calls_per_second: f64,
    latency_ms: Option<Latency>,
    /// This and the memory are absent if the server has died.
    server_cpu_us_per_call: Option<f64>,
    #[serde(default)]
    server_threads_cpu_us_per_call: BTreeMap<String, f64>,
    server_memory_bytes: Option<Memory>,
    #[serde(default)]
    failures: BTreeMap<String, u64>,
}

#[derive(Default, Deserialize)]
struct Latency {
    p50: f64,
    p99: f64,
}

#[derive(Deserialize)]
struct Memory {
    peak: u64,
}

impl Generator {
    /// The command of a build that has it.
    pub fn of(how: Build) -> Self {
        Self {
            program: repo::target().join(how.folder()).join("mcpbolt"),
        }
    }

    /// Builds the command.
    pub fn build(how: Build, run: &mut dyn FnMut(Command) -> Result<()>) -> Result<Self> {
        let mut build = cargo("build -p mcpbolt-cli --bin mcpbolt");
        build.args(how.flags());
        run(build)?;
        Ok(Self::of(how))
    }

    /// Loads a server; ten times as long if too few calls are answered.
    ///
    /// # Errors
    /// If the server cannot be started or reached. Wrong answers are among the figures.
    pub fn run(&self, to: &To<'_>, load: &Load) -> Result<Figures> {
        let figures = self.once(to, load)?;
        if figures.calls >= LEAST_CALLS || figures.faults.first.is_some() {
            return Ok(figures);
        }
        let longer = Load {
            length: load.length * 10,
            ..*load
        };
        let mut figures = self.once(to, &longer)?;
        if figures.calls < LEAST_CALLS {
            let calls = figures.calls;
            figures
                .faults
                .tell(format!("only {calls} calls were answered"));
        }
        Ok(figures)
    }

    fn once(&self, to: &To<'_>, load: &Load) -> Result<Figures> {
        fs::create_dir_all(repo::cache())?;
        let report = repo::cache().join(format!("load-{}.json", std::process::id()));
        let mut command = Command::new(&self.program);
        command.args(["load", "--revision", load.revision.name(), "--in-flight"]);
        command.arg(load.in_flight.to_string());
        let millis = |time: Duration| format!("{}ms", time.as_millis());
        command.args(["--duration", &millis(load.length)]);
        command.args(["--warm-up", &millis(load.warm_up)]);
        match load.calls {
            Calls::Echo(bytes) => {
                command.args(["--workload", "echo", "--bytes", &bytes.to_string()])
            }
            Calls::Progress(count) => command.args([
                "--workload",
                "progress",
                "--notifications",
                &count.to_string(),
            ]),
        };
        command.arg("--json").arg(&report);
        let _ = fs::remove_file(&report);
        match to {
            To::Command(start) => {
                let core = cores::of_server().filter(|_| has_taskset());
                start_by(&mut command, start, core)?;
            }
            To::Running { port, process } => {
                command.arg(format!("http://127.0.0.1:{port}/mcp"));
                command.args(["--pid", &process.to_string()]);
            }
        }
        let output = command.stdout(Stdio::null()).output();
        let output = output.with_context(|| format!("starting {}", self.program.display()))?;
        let Ok(json) = fs::read(&report) else {
            // The server writes to the same place, if it is a file; the load tells of its own end after that.
            let said = match to {
                To::Command(Start {
                    stderr: Some(file), ..
                }) => fs::read(file)?,
                _ => output.stderr,
            };
            bail!("{}", shorten(last_line(&String::from_utf8_lossy(&said))));
        };
        let _ = fs::remove_file(&report);
        Ok(serde_json::from_slice::<Report>(&json)?.into())
    }
}

/// Whether the program that pins others to a core is there. Says so once if it is not.
fn has_taskset() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let mut look = Command::new("taskset");
        look.arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let has = look.status().is_ok();
        if !has {
            eprintln!("note: there is no taskset, so loaded servers are not pinned to a core");
        }
        has
    })
}

/// The last line that is not empty.
fn last_line(text: &str) -> &str {
    let mut lines = text.lines().rev();
    lines
        .find(|line| !line.trim().is_empty())
        .unwrap_or("it said nothing")
}

/// Has the load start the server, on a core if there is one for it.
fn start_by(command: &mut Command, start: &Start, core: Option<usize>) -> Result<()> {
    // All of our variables, as a server has them that is started here.
    for (name, _) in std::env::vars_os() {
        if let Some(name) = name.to_str().filter(|name| !name.contains('=')) {
            command.args(["--env", name]);
        }
    }
    for (name, value) in &start.env {
        command.arg("--env").arg(format!("{name}={value}"));
    }
    command.arg("--");
    if let Some(core) = core {
        command.args(["taskset", "-c", &core.to_string()]);
    }
    command.args(&start.words);
    if let Some(file) = &start.stderr {
        command.stderr(fs::File::create(file)?);
    }
    Ok(())
}

impl From<Report> for Figures {
    fn from(report: Report) -> Self {
        let micros = |micros: f64| Duration::from_secs_f64(micros / 1e6);
        let is_of_engine =
            |name: &str| name.starts_with("mcpbolt") && !name.starts_with("mcpbolt-python");
        let threads = report.server_threads_cpu_us_per_call.iter();
        let of_language = threads.filter(|(name, _)| !is_of_engine(name));
        let latency = report.latency_ms.unwrap_or_default();
        let mut faults = Faults {
            count: report.errors,
            first: report.failures.into_keys().next(),
        };
        // Without an answer, the load is repeated for longer.
        let is_known =
            report.server_cpu_us_per_call.is_some() && report.server_memory_bytes.is_some();
        if report.calls > 0 && !is_known {
            faults.tell("the processor time and memory of the server are not known");
        }
        Self {
            calls: report.calls,
            calls_per_second: report.calls_per_second,
            p50: micros(latency.p50 * 1e3),
            p99: micros(latency.p99 * 1e3),
            cpu_per_call: micros(report.server_cpu_us_per_call.unwrap_or_default()),
            cpu_of_language: of_language.map(|(_, cpu)| micros(*cpu)).sum(),
            peak_bytes: report.server_memory_bytes.map_or(0, |memory| memory.peak),
            faults,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_a_load_becomes_figures() {
        let json = r#"{
            "server": "a", "calls": 1000, "errors": 2, "calls_per_second": 500.0, "duration_s": 2.0,
            "latency_ms": {"p50": 0.25, "p90": 1.0, "p95": 1.0, "p99": 2.0, "max": 3.0, "mean": 0.3},
            "server_cpu_us_per_call": 40.0, "server_alone_cpu_us_per_call": 40.0,
            "server_threads_cpu_us_per_call": {"node": 10.0, "mcpbolt-loop": 25.0, "mcpbolt-python": 5.0},
            "server_memory_bytes": {"begin": 1, "end": 2, "peak": 3},
            "failures": {"late": 2}
        }"#;
        let figures = Figures::from(serde_json::from_str::<Report>(json).unwrap());
        assert_eq!((figures.calls, figures.peak_bytes), (1000, 3));
        assert_eq!(figures.p50, Duration::from_micros(250));
        assert_eq!(figures.cpu_per_call, Duration::from_micros(40));
        assert_eq!(figures.cpu_of_language, Duration::from_micros(15));
        assert_eq!(
            (figures.faults.count, figures.faults.first.as_deref()),
            (2, Some("late"))
        );
    }

    /// The loaded server has the environment of one that is started here, and is pinned where that is possible.
    #[test]
    fn a_loaded_server_has_our_environment_and_perhaps_a_core() {
        let start = Start {
            words: vec!["server".to_owned()],
            env: vec![("PATH".to_owned(), "own".to_owned())],
            stderr: None,
        };
        let args = |core| {
            let mut command = Command::new("mcpbolt");
            start_by(&mut command, &start, core).unwrap();
            let args = command
                .get_args()
                .map(|arg| arg.to_str().unwrap().to_owned());
            args.collect::<Vec<_>>()
        };
        let bare = args(None);
        let at = |args: &[&str]| bare.windows(2).position(|pair| pair == args);
        let (ours, own) = (at(&["--env", "PATH"]), at(&["--env", "PATH=own"]));
        assert!(
            ours.is_some() && ours < own,
            "the server's own come last: {bare:?}"
        );
        assert!(
            bare.ends_with(&["--".to_owned(), "server".to_owned()]),
            "{bare:?}"
        );
        assert!(args(Some(1)).join(" ").ends_with("-- taskset -c 1 server"));
    }

    /// A load without a report tells why, though its standard error is the file of the server's: here, a shell that
    /// finds no script of the name "load".
    #[test]
    fn a_load_that_fails_tells_why() {
        let file = std::env::temp_dir().join(format!("xtask-load-{}", std::process::id()));
        let start = Start {
            words: vec!["server".to_owned()],
            stderr: Some(file.clone()),
            ..Start::default()
        };
        let load = Load {
            revision: Revision::Handshake,
            calls: Calls::Echo(100),
            in_flight: 1,
            length: Duration::from_secs(1),
            warm_up: Duration::ZERO,
        };
        let program = PathBuf::from("sh");
        let error = Generator { program }
            .run(&To::Command(&start), &load)
            .unwrap_err();
        fs::remove_file(file).unwrap();
        let said = format!("{error:#}");
        assert!(said.starts_with("sh: ") && said.contains("load"), "{said}");
    }

    /// A server that has died has no processor time any more, but the report tells what became of its calls.
    #[test]
    fn the_failures_of_a_server_that_died_are_told() {
        let of = |json: &str| Figures::from(serde_json::from_str::<Report>(json).unwrap());
        let died = r#"{"calls": 0, "errors": 7, "calls_per_second": 0.0, "failures": {"the connection was closed": 7}}"#;
        let faults = of(died).faults;
        let first = faults.first.as_deref();
        assert_eq!(
            (faults.count, first),
            (7, Some("the connection was closed"))
        );
        let unseen = r#"{"calls": 9, "errors": 0, "calls_per_second": 9.0, "latency_ms": {"p50": 1.0, "p99": 1.0}}"#;
        let first = of(unseen).faults.first.unwrap();
        assert!(first.contains("not known"), "{first}");
        let empty = of(r#"{"calls": 0, "errors": 0, "calls_per_second": 0.0}"#);
        assert!(empty.faults.first.is_none(), "it is repeated for longer");
    }
}
