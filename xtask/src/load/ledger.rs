//! Tracks the calls in flight, and checks everything that can be wrong with an answer.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::wire::{self, Message, Progress, Workload, shorten};

/// Faults, counted by kind, with the first of all as a sample.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Answers with a wrong text, or errors.
    pub wrong: u64,
    /// Answers to calls that are not in flight: repeated, or never sent.
    pub stray: u64,
    /// Lines that are not a JSON-RPC message.
    pub garbage: u64,
    /// Progress out of order, missing, or after the answer.
    pub progress: u64,
    /// Calls without an answer.
    pub lost: u64,
    /// The description of the first fault.
    pub first: Option<String>,
}

impl Faults {
    pub fn total(&self) -> u64 {
        self.wrong + self.stray + self.garbage + self.progress + self.lost
    }

    /// Keeps the description of a fault if it is the first.
    pub fn tell(&mut self, story: impl Into<String>) {
        self.first.get_or_insert_with(|| story.into());
    }

    /// Adds the faults from another part of the same session.
    pub fn add(&mut self, other: Self) {
        self.wrong += other.wrong;
        self.stray += other.stray;
        self.garbage += other.garbage;
        self.progress += other.progress;
        self.lost += other.lost;
        if let Some(story) = other.first {
            self.tell(story);
        }
    }
}

struct Flight {
    sent: Instant,
    progress: u32,
}

/// The calls in flight of one workload.
pub struct Ledger<'a> {
    workload: &'a Workload,
    flights: HashMap<u64, Flight>,
    /// Correctly answered calls.
    pub answered: u64,
    /// The latency of each of them, in nanoseconds, while `timing`.
    pub latencies: Vec<u64>,
    pub timing: bool,
    pub faults: Faults,
}

impl<'a> Ledger<'a> {
    pub fn new(workload: &'a Workload) -> Self {
        Self {
            workload,
            flights: HashMap::new(),
            answered: 0,
            latencies: Vec::new(),
            timing: false,
            faults: Faults::default(),
        }
    }

    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Records that a call is sent now.
    pub fn sent(&mut self, id: u64, now: Instant) {
        self.flights.insert(
            id,
            Flight {
                sent: now,
                progress: 0,
            },
        );
    }

    /// Checks one line from the server.
    pub fn line(&mut self, line: &[u8], now: Instant) {
        let message = match serde_json::from_slice::<Message<'_>>(line) {
            Ok(message) if message.jsonrpc == "2.0" => message,
            _ => {
                self.faults.garbage += 1;
                return self.faults.tell(format!(
                    "no message: {}",
                    shorten(&String::from_utf8_lossy(line))
                ));
            }
        };
        match (&message.method, message.id) {
            (Some(method), None) if method == "notifications/progress" => self.progress(&message),
            (Some(_), _) => {}
            (None, Some(id)) => self.answer(id.get(), &message, now),
            (None, None) => {
                self.faults.stray += 1;
                self.faults.tell("an answer without an id");
            }
        }
    }

    fn answer(&mut self, id: &str, message: &Message<'_>, now: Instant) {
        let flight = id
            .parse()
            .ok()
            .and_then(|id| Some((id, self.flights.remove(&id)?)));
        let Some((id, flight)) = flight else {
            self.faults.stray += 1;
            return self
                .faults
                .tell(format!("an answer to {id}, which is not in flight"));
        };
        if let Err(error) = self.judge(id, message) {
            self.faults.wrong += 1;
            return self.faults.tell(format!("{error:#}"));
        }
        if flight.progress != self.workload.progress() {
            self.faults.progress += 1;
            let (came, want) = (flight.progress, self.workload.progress());
            self.faults.tell(format!(
                "call {id}: {came} of {want} progress notifications"
            ));
        }
        self.answered += 1;
        if self.timing {
            let took: Duration = now - flight.sent;
            self.latencies
                .push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    fn judge(&self, id: u64, message: &Message<'_>) -> Result<()> {
        match (message.result, message.error) {
            (Some(result), None) => self.workload.check(id, &wire::text(result)?),
            (None, Some(error)) => bail!("call {id} failed: {}", shorten(error.get())),
            _ => bail!("call {id}: neither a result nor an error alone"),
        }
    }

    fn progress(&mut self, message: &Message<'_>) {
        let parsed = message
            .params
            .and_then(|params| serde_json::from_str::<Progress<'_>>(params.get()).ok());
        let Some(progress) = parsed else {
            self.faults.garbage += 1;
            return self.faults.tell("progress without its params");
        };
        let token = progress.progress_token.get().parse::<u64>();
        let Some(flight) = token.ok().and_then(|id| self.flights.get_mut(&id)) else {
            self.faults.progress += 1;
            return self
                .faults
                .tell("progress for a call that is not in flight");
        };
        flight.progress += 1;
        let total = f64::from(self.workload.progress());
        if progress.progress != f64::from(flight.progress) || progress.total != Some(total) {
            self.faults.progress += 1;
            let want = flight.progress;
            self.faults.tell(format!(
                "progress {} where {want} of {total} was due",
                progress.progress
            ));
        }
    }

    /// Counts the calls still in flight as lost.
    pub fn give_up(&mut self) {
        self.faults.lost += self.flights.len() as u64;
        self.flights.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::Revision;
    use super::*;

    fn answer(id: u64, text: &str) -> Vec<u8> {
        let text = serde_json::Value::from(text);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{text}}}]}}}}"#).into_bytes()
    }

    fn echoed(workload: &Workload, id: u64) -> String {
        let mut call = Vec::new();
        workload.write(id, &mut call);
        let call: serde_json::Value = serde_json::from_slice(&call).unwrap();
        call["params"]["arguments"]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn each_call_takes_exactly_one_right_answer() {
        let workload = Workload::echo(Revision::Handshake, 64);
        let mut ledger = Ledger::new(&workload);
        let now = Instant::now();
        for id in 1..=3 {
            ledger.sent(id, now);
        }
        ledger.line(&answer(2, &echoed(&workload, 2)), now);
        assert_eq!((ledger.answered, ledger.faults.total()), (1, 0));
        ledger.line(&answer(2, &echoed(&workload, 2)), now);
        assert_eq!(ledger.faults.stray, 1, "answered twice");
        ledger.line(&answer(1, &echoed(&workload, 3)), now);
        assert_eq!(ledger.faults.wrong, 1, "answers swapped");
        ledger.line(&answer(9, "x"), now);
        assert_eq!(ledger.faults.stray, 2, "never asked");
        ledger.line(b"hello", now);
        ledger.line(br#"{"jsonrpc":"1.0","id":3,"result":{}}"#, now);
        assert_eq!(ledger.faults.garbage, 2);
        ledger.give_up();
        assert_eq!((ledger.faults.lost, ledger.answered), (1, 1));
    }

    #[test]
    fn an_id_of_another_type_is_no_answer() {
        let workload = Workload::echo(Revision::Handshake, 64);
        let mut ledger = Ledger::new(&workload);
        ledger.sent(1, Instant::now());
        ledger.line(
            br#"{"jsonrpc":"2.0","id":"1","result":{"content":[]}}"#,
            Instant::now(),
        );
        assert_eq!((ledger.faults.stray, ledger.in_flight()), (1, 1));
    }

    #[test]
    fn progress_must_be_whole_in_order_and_before_the_answer() {
        let workload = Workload::Progress {
            revision: Revision::Handshake,
            count: 2,
        };
        let report = |value: u32| {
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":1,"progress":{value},"total":2}}}}"#)
                .into_bytes()
        };
        let faults = |lines: &[Vec<u8>]| {
            let mut ledger = Ledger::new(&workload);
            ledger.sent(1, Instant::now());
            for line in lines {
                ledger.line(line, Instant::now());
            }
            ledger.faults.progress
        };
        assert_eq!(faults(&[report(1), report(2), answer(1, "done")]), 0);
        assert_eq!(faults(&[report(1), answer(1, "done")]), 1, "one is missing");
        assert_eq!(
            faults(&[report(2), report(1), answer(1, "done")]),
            2,
            "out of order"
        );
        assert_eq!(
            faults(&[report(1), answer(1, "done"), report(2)]),
            2,
            "after the answer"
        );
    }
}
