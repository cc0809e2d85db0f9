//! Sends the calls when they are due, and takes the answers.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::stream::FuturesUnordered;
use futures::{StreamExt, select_biased};
use hdrhistogram::Histogram;
use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::RequestOptions;
use mcpbolt::error::RequestError;
use mcpbolt::message::Message;
use serde::Deserialize;

use super::plan::{Pace, Template};
use super::process::{Server, Usage};

/// The most calls in flight. Those that are due beyond that fail.
const MAX_IN_FLIGHT: usize = 100_000;

/// The most different failures that are told apart.
const MAX_FAILURES: usize = 10;

/// What to do.
pub struct Load<'a> {
    pub clients: Vec<Client>,
    pub tool: &'a str,
    pub arguments: Template,
    pub expected: Option<Template>,
    pub pace: Pace,
    pub warm_up: Duration,
    pub duration: Duration,
    pub timeout: Duration,
    pub server: Server,
}

/// What came of it, in the measured time.
pub struct Outcome {
    pub duration: Duration,
    /// The latency of calls that were answered as they should be, in microseconds.
    pub latency: Histogram<u64>,
    pub errors: u64,
    /// How often each failure was seen.
    pub failures: BTreeMap<String, u64>,
    /// The calls that ended within the measured time, and how many of them were answered as they should be.
    pub ended: u64,
    pub answered: u64,
    /// What the server used in that time.
    pub used: Option<Usage>,
}

/// The times of a run.
#[derive(Clone, Copy)]
struct Window {
    begin: Instant,
    measured: Instant,
    end: Instant,
}

/// Runs the load on this thread, and waits for the last answer.
pub fn drive(load: Load<'_>) -> Result<Outcome> {
    let begin = Instant::now();
    let measured = begin + load.warm_up;
    let window = Window {
        begin,
        measured,
        end: measured + load.duration,
    };
    let (due, dues) = unbounded();
    thread::scope(|scope| {
        scope.spawn(move || send_dues(load.pace, window, &due));
        let used = scope.spawn(|| used_within(&load.server, window));
        let mut outcome = block_on(run(&load, window, dues))?;
        outcome.used = used.join().unwrap_or_default();
        Ok(outcome)
    })
}

/// Tells when calls are due: with a closed loop the first ones only.
fn send_dues(pace: Pace, window: Window, due: &UnboundedSender<Instant>) {
    match pace {
        Pace::Closed(in_flight) => {
            for _ in 0..in_flight {
                let _ = due.unbounded_send(Instant::now());
            }
            sleep_until(window.end);
        }
        Pace::Open(rate) => {
            let after = |number: u64| Duration::from_secs_f64(number as f64 / rate);
            let dues = (0..).map(|number| window.begin + after(number));
            for at in dues.take_while(|at| *at < window.end) {
                sleep_until(at);
                // Nobody receives any more if the run has failed.
                if due.unbounded_send(at).is_err() {
                    return;
                }
            }
        }
    }
}

fn used_within(server: &Server, window: Window) -> Option<Usage> {
    sleep_until(window.measured);
    let before = server.usage()?;
    sleep_until(window.end);
    let after = server.usage()?;
    let cpu = after.cpu.saturating_sub(before.cpu);
    Some(Usage { cpu, ..after })
}

fn sleep_until(at: Instant) {
    let left = at.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        thread::sleep(left);
    }
}

async fn run(load: &Load<'_>, window: Window, dues: UnboundedReceiver<Instant>) -> Result<Outcome> {
    let mut tally = Tally::new(window)?;
    let mut calls = FuturesUnordered::new();
    let mut dues = dues.fuse();
    let mut number = 0;
    let mut next = || {
        number += 1;
        number
    };
    loop {
        select_biased! {
            (at, ended) = calls.select_next_some() => {
                let now = Instant::now();
                tally.ended(at, now, ended);
                if matches!(load.pace, Pace::Closed(_)) && now < window.end {
                    calls.push(load.call(now, next()));
                }
            }
            at = dues.select_next_some() => match calls.len() < MAX_IN_FLIGHT {
                true => calls.push(load.call(at, next())),
                false => tally.ended(at, Instant::now(), Err(format!("{MAX_IN_FLIGHT} calls were in flight"))),
            },
            complete => break,
        }
        tally.show(calls.len());
    }
    Ok(tally.outcome())
}

impl Load<'_> {
    /// Calls the tool; gives back when the call was due.
    async fn call(&self, due: Instant, number: u64) -> (Instant, Result<(), String>) {
        (due, self.answered(number).await)
    }

    async fn answered(&self, number: u64) -> Result<(), String> {
        let at = usize::try_from(number).unwrap_or_default() % self.clients.len();
        let tool = serde_json::Value::from(self.tool);
        let params = format!(
            "{{\"name\":{tool},\"arguments\":{}}}",
            self.arguments.of(number)
        );
        let options = RequestOptions {
            timeout: Some(self.timeout),
            ..RequestOptions::default()
        };
        let words = |error: RequestError| error.to_string();
        let request = self.clients[at].request("tools/call", Some(&params), options);
        let answer = request.map_err(words)?.await.map_err(words)?;
        check(
            &answer,
            self.expected
                .as_ref()
                .map(|expected| expected.of(number))
                .as_deref(),
        )
    }
}

fn check(answer: &Message, expected: Option<&str>) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Called {
        #[serde(default)]
        is_error: bool,
        content: Vec<Content>,
    }
    #[derive(Deserialize)]
    struct Content {
        #[serde(default)]
        text: String,
    }
    let result = answer.as_ref().result().unwrap_or_default();
    let Called { is_error, content } =
        serde_json::from_str(result).map_err(|error| format!("the result: {error}"))?;
    let text: String = content.into_iter().map(|part| part.text).collect();
    match expected {
        _ if is_error => Err(format!("the tool failed: {text}")),
        Some(expected) if text != expected => Err("the answer is not the expected text".to_owned()),
        _ => Ok(()),
    }
}

/// Counts calls.
struct Tally {
    window: Window,
    outcome: Outcome,
    is_shown: bool,
    shown: Instant,
}

impl Tally {
    fn new(window: Window) -> Result<Self> {
        let outcome = Outcome {
            duration: window.end - window.measured,
            // Up to a day, within a thousandth.
            latency: Histogram::new_with_bounds(1, 86_400_000_000, 3)?,
            errors: 0,
            failures: BTreeMap::new(),
            ended: 0,
            answered: 0,
            used: None,
        };
        let is_shown = std::io::stderr().is_terminal();
        Ok(Self {
            window,
            outcome,
            is_shown,
            shown: window.begin,
        })
    }

    /// Notes the end of a call that was due at a time.
    fn ended(&mut self, due: Instant, now: Instant, ended: Result<(), String>) {
        let Self {
            window, outcome, ..
        } = self;
        let is_within = window.measured <= now && now < window.end;
        outcome.ended += u64::from(is_within);
        outcome.answered += u64::from(is_within && ended.is_ok());
        if due < window.measured || due >= window.end {
            return;
        }
        match ended {
            Ok(()) => {
                let latency = u64::try_from((now - due).as_micros()).unwrap_or(u64::MAX);
                outcome.latency.saturating_record(latency.max(1));
            }
            Err(why) => {
                outcome.errors += 1;
                let is_known = outcome.failures.contains_key(&why);
                let why = match is_known || outcome.failures.len() < MAX_FAILURES {
                    true => why,
                    false => "others".to_owned(),
                };
                *outcome.failures.entry(why).or_default() += 1;
            }
        }
    }

    /// Shows how far it is, on a terminal.
    fn show(&mut self, in_flight: usize) {
        if !self.is_shown || self.shown.elapsed() < Duration::from_millis(200) {
            return;
        }
        self.shown = Instant::now();
        let Outcome {
            latency, errors, ..
        } = &self.outcome;
        let p99 = latency.value_at_quantile(0.99) as f64 / 1e3;
        let seconds = self.window.begin.elapsed().as_secs();
        let whole = (self.window.end - self.window.begin).as_secs();
        let calls = latency.len();
        eprint!(
            "\r{seconds} of {whole} s  {calls} calls  {errors} errors  {in_flight} in flight  p99 {p99:.2} ms\u{1b}[K"
        );
        let _ = std::io::stderr().flush();
    }

    fn outcome(self) -> Outcome {
        if self.is_shown {
            eprint!("\r\u{1b}[K");
        }
        self.outcome
    }
}
