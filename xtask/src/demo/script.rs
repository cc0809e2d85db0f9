//! The script that runs on each server, and its results.

use std::time::Duration;

use anyhow::{Result, bail};
use indicatif::ProgressBar;

use super::contender::Contender;
use crate::load::{
    Calls, Faults, Figures, Generator, Load, Revision, Session, Start, To, cancelled_sleep,
};

/// The tools of a diagnostic server.
const TOOLS: [&str; 5] = ["echo", "resize", "sleep", "progress", "stats"];

/// One measurement of the script.
pub struct Step {
    pub name: &'static str,
    pub in_flight: usize,
    calls: Calls,
}

/// The warm-up of a server without a JIT.
const WARM_UP: Duration = Duration::from_millis(300);

/// How many notifications each call with progress requests.
const PROGRESS: u32 = 20;

const STEPS: [Step; 5] = [
    Step {
        name: "echo 100 B",
        in_flight: 1,
        calls: Calls::Echo(100),
    },
    Step {
        name: "echo 100 B",
        in_flight: 32,
        calls: Calls::Echo(100),
    },
    Step {
        name: "echo 10 KB",
        in_flight: 16,
        calls: Calls::Echo(10_000),
    },
    Step {
        name: "echo 1 MB",
        in_flight: 4,
        calls: Calls::Echo(1_000_000),
    },
    Step {
        name: "progress × 20",
        in_flight: 8,
        calls: Calls::Progress(PROGRESS),
    },
];

/// The steps and settings for each server.
pub struct Script {
    pub steps: &'static [Step],
    length: Duration,
    /// The warm-up of a server with a JIT.
    warm_up_of_jit: Duration,
    /// How many times a server is started to measure its first answer.
    starts: usize,
}

/// The results of one server.
pub struct Report {
    pub name: &'static str,
    pub state: State,
}

pub enum State {
    /// The server could not be built or started, or the handshake failed.
    Missing(String),
    Played {
        first_list: Duration,
        rows: Vec<(&'static Step, Figures)>,
        cancelled_after: Option<Duration>,
        exited_after: Option<Duration>,
        /// All faults, including those of the rows.
        faults: Faults,
    },
}

impl Script {
    pub fn full() -> Self {
        Self {
            steps: &STEPS,
            length: Duration::from_millis(2000),
            warm_up_of_jit: Duration::from_millis(2500),
            starts: 7,
        }
    }

    pub fn quick() -> Self {
        Self {
            steps: &STEPS,
            length: Duration::from_millis(300),
            warm_up_of_jit: WARM_UP,
            starts: 1,
        }
    }

    /// Runs the whole script with one server.
    pub fn play(
        &self,
        generator: &Generator,
        contender: &Contender,
        start: &Start,
        revision: Revision,
        bar: &ProgressBar,
    ) -> Report {
        let state = match self.open(start, revision) {
            Ok(session) => self.drive((generator, contender, start), session, bar),
            Err(error) => State::Missing(format!("{error:#}")),
        };
        Report {
            name: contender.name,
            state,
        }
    }

    /// Opens a session; its time to the first list is the median of several starts.
    fn open(&self, start: &Start, revision: Revision) -> Result<Session> {
        let mut times = Vec::new();
        for _ in 1..self.starts {
            let session = Session::open(start, revision)?;
            times.push(session.first_list);
            session.close();
        }
        let mut session = Session::open(start, revision)?;
        times.push(session.first_list);
        times.sort_unstable();
        session.first_list = times[times.len() / 2];
        if let Some(tool) = TOOLS
            .iter()
            .find(|tool| !session.tools.iter().any(|name| name == *tool))
        {
            bail!("it does not list the tool {tool}");
        }
        Ok(session)
    }

    /// Loads a new process of the server for each step, and has the session cancel and end.
    fn drive(
        &self,
        (generator, contender, start): (&Generator, &Contender, &Start),
        mut session: Session,
        bar: &ProgressBar,
    ) -> State {
        let first_list = session.first_list;
        let mut faults = Faults::default();
        let mut rows: Vec<(&'static Step, Figures)> = Vec::new();
        for step in self.steps {
            bar.set_message(format!(
                "{}: {}, {} in flight",
                contender.name, step.name, step.in_flight
            ));
            let load = Load {
                revision: session.revision,
                calls: step.calls,
                in_flight: step.in_flight,
                length: self.length,
                warm_up: match contender.has_jit() {
                    true => self.warm_up_of_jit,
                    false => WARM_UP,
                },
            };
            let figures = generator.run(&To::Command(start), &load);
            bar.inc(1);
            match figures {
                Ok(figures) => {
                    faults.add(figures.faults.clone());
                    rows.push((step, figures));
                }
                Err(error) => faults.tell(format!("{}: {error:#}", step.name)),
            }
            if faults.first.is_some() {
                break;
            }
        }
        let cancelled_after = cancelled_sleep(&mut session)
            .map_err(|error| faults.tell(format!("{error:#}")))
            .ok();
        let exited_after = session.close();
        if exited_after.is_none() {
            faults.tell("it does not exit when its input is closed");
        }
        State::Played {
            first_list,
            rows,
            cancelled_after,
            exited_after,
            faults,
        }
    }
}

impl Report {
    pub fn missing(name: &'static str, why: String) -> Self {
        Self {
            name,
            state: State::Missing(why),
        }
    }

    /// Whether the server ran without a fault.
    pub fn is_clean(&self) -> bool {
        match &self.state {
            State::Missing(_) => false,
            State::Played { faults, .. } => faults.count == 0 && faults.first.is_none(),
        }
    }

    /// One line, for outputs that are not a terminal.
    pub fn summary(&self) -> String {
        match &self.state {
            State::Missing(why) => format!("{}: MISSING: {why}", self.name),
            State::Played { rows, .. } => {
                let calls: u64 = rows.iter().map(|(_, figures)| figures.calls).sum();
                format!("{}: {calls} calls measured and checked", self.name)
            }
        }
    }
}
