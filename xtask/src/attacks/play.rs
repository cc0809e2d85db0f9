//! Plays an attack: sends its bytes, and checks the answers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::answer::{Answer, PATIENCE, SILENCE, Speech, hear, read};
use super::case::{Carrier, Case, Era, Expect, Kind, Setup, Step};
use super::client::Client;
use super::frames;
use super::parts::Words;
use super::target::{Place, Target};

/// The most characters of an answer that are shown.
const SHOWN: usize = 300;

/// An attack under way.
pub struct Player<'a> {
    pub place: &'a Place,
    pub carrier: Carrier,
    pub case: &'a Case,
    pub words: Words,
    open: BTreeMap<String, Client>,
    held: Vec<Client>,
    /// The server processes of connections on pipes.
    processes: Vec<Target>,
}

impl<'a> Player<'a> {
    pub fn new(place: &'a Place, carrier: Carrier, case: &'a Case, mut words: Words) -> Self {
        words.set("port", place.port().to_string());
        words.set("host", "127.0.0.1:$port");
        Self {
            place,
            carrier,
            case,
            words,
            open: BTreeMap::new(),
            held: Vec::new(),
            processes: Vec::new(),
        }
    }

    /// Runs all steps.
    pub fn play(&mut self) -> Result<()> {
        self.steps(&self.case.steps, "")
    }

    /// Ends the connections on pipes, and waits for the ends of their servers, which answer first what they
    /// have received. Returns how often `touch` ran in all of them.
    pub fn finish(mut self) -> Result<u64> {
        let until = Instant::now() + PATIENCE;
        for client in self.open.values_mut().chain(&mut self.held) {
            client.wire.finish(until)?;
        }
        self.processes.into_iter().map(Target::ended).sum()
    }

    fn steps(&mut self, steps: &[Step], place: &str) -> Result<()> {
        for (index, step) in steps.iter().enumerate() {
            let place = format!("{place}{}", index + 1);
            if step.steps.is_empty() && step.times.is_none() {
                self.step(step).with_context(|| format!("step {place}"))?;
            } else {
                self.repeat(step, &place)?;
            }
            thread::sleep(Duration::from_millis(step.pause));
        }
        Ok(())
    }

    /// Repeats a step, or its nested steps, each time on new connections.
    fn repeat(&mut self, step: &Step, place: &str) -> Result<()> {
        for round in 0..step.times.unwrap_or(1) {
            let outside = std::mem::take(&mut self.open);
            let words = self.words.clone();
            self.words.set("round", round.to_string());
            let held = self.held.len();
            let done = match step.steps.is_empty() {
                true => self.step(step).with_context(|| format!("step {place}")),
                false => self.steps(&step.steps, &format!("{place}.")),
            };
            let inside = std::mem::replace(&mut self.open, outside);
            if !step.hold && !step.steps.is_empty() {
                self.held.truncate(held);
            }
            if step.hold {
                self.held.extend(inside.into_values());
            }
            self.words = words;
            done.with_context(|| format!("round {}", round + 1))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let speaks = step.message.is_some();
        if step.honest {
            honest(self.place, self.carrier, self.case.server).context("an honest call")?;
        }
        let acts = speaks || step.send.is_some() || step.request.is_some() || step.frames.is_some();
        if !acts && step.expect.is_none() {
            return Ok(());
        }
        if !self.open.contains_key(&step.on) {
            let client = self.connect(step)?;
            self.open.insert(step.on.clone(), client);
        }
        let client = self.open.get_mut(&step.on).context("no connection")?;
        if let Some(session) = self.words.get("session") {
            client.session = Some(session.to_owned());
        }
        client.key.clone_from(&step.key);
        if let Some(parts) = &step.send {
            client.wire.send(&parts.bytes(&self.words))?;
        }
        if step.request.is_some() {
            let request = request(step, client, &self.words);
            client.wire.send(&request)?;
        }
        if let Some(parts) = &step.message {
            let kind = match self.case.era {
                Era::Handshake => Kind::Session,
                Era::Stateless => Kind::Stateless,
            };
            client.say(&parts.bytes(&self.words), kind)?;
        }
        for frame in step.frames.iter().flatten() {
            client.wire.send(&frames::bytes(frame, &self.words))?;
        }
        if step.expect.is_none() && step.keep.is_empty() {
            return Ok(());
        }
        let expect = step.expect.as_ref();
        let wait = match expect {
            Some(expect) if expect.silence => SILENCE,
            _ => PATIENCE,
        };
        let asks_head = step
            .request
            .as_ref()
            .is_some_and(|it| it.starts_with("HEAD "));
        let speech = if asks_head {
            Speech::Head
        } else {
            client.speech
        };
        if let Some(hears) = step.hears {
            let until = Instant::now() + Duration::from_millis(hears);
            let answer = hear(&mut client.wire, until)?;
            return expect.map_or(Ok(()), |expect| judge(expect, &answer, &self.words));
        }
        let mut answer = Answer::Silence;
        for _ in 0..step.answers.unwrap_or(1) {
            answer = read(&mut client.wire, speech, wait)?;
            let waits = |answer: &Answer| !matches!(answer, Answer::Closed | Answer::Silence);
            while expect.is_some_and(|expect| expect.ends) && waits(&answer) {
                answer = read(&mut client.wire, speech, wait)?;
            }
            if let Some(expect) = expect {
                judge(expect, &answer, &self.words)?;
            }
        }
        self.keep(step, &answer)
    }

    /// Saves the parts of the answer that later steps need.
    fn keep(&mut self, step: &Step, answer: &Answer) -> Result<()> {
        for (name, place) in &step.keep {
            let value = match place.strip_prefix("header ") {
                Some(header) => answer.header(header).map(str::to_owned),
                None if place == "event" => answer.event().map(str::to_owned),
                None => match answer.json().pointer(place) {
                    Some(Value::String(text)) => Some(text.clone()),
                    Some(other) => Some(other.to_string()),
                    None => None,
                },
            };
            let value = value.with_context(|| format!("no {place} in {}", shown(answer)))?;
            self.words.set(name, value);
        }
        Ok(())
    }

    /// Opens the connection for a step.
    fn connect(&mut self, step: &Step) -> Result<Client> {
        let wire = match self.place {
            Place::Pipe(words, setup) => {
                let (process, wire) = Target::on_pipes(words, *setup)?;
                self.processes.push(process);
                wire
            }
            place => place.connect(step.from.as_deref())?,
        };
        let host = self.words.put_into("$host");
        let mut client = Client::new(wire, self.carrier, &host);
        client.key.clone_from(&step.key);
        if self.carrier == Carrier::Ws && step.request.is_none() {
            client.upgrade()?;
        }
        let begins = self.case.era == Era::Handshake;
        if step.message.is_some() && begins {
            match (self.carrier, self.words.get("session")) {
                (Carrier::Http, Some(_)) => {}
                _ => client.shake_hands()?,
            }
        }
        Ok(client)
    }
}

/// Makes an honest call on a new connection and returns the counters of `stats`. On pipes, the connection
/// is to a new process.
pub fn honest(place: &Place, carrier: Carrier, setup: Setup) -> Result<Value> {
    // Anonymous clients are counted by address here, so the honest client uses another one.
    let from = (setup == Setup::Quota).then_some("127.0.0.77");
    let (_process, wire) = match place {
        Place::Pipe(words, setup) => {
            let (process, wire) = Target::on_pipes(words, *setup)?;
            (Some(process), wire)
        }
        place => (None, place.connect(from)?),
    };
    let host = format!("127.0.0.1:{}", place.port());
    let mut client = Client::new(wire, carrier, &host);
    client.key = matches!(setup, Setup::Keys | Setup::Tokens).then(|| "key-honest".to_owned());
    if carrier == Carrier::Ws {
        client.upgrade()?;
    }
    client.shake_hands()?;
    let (stats, _) = client.stats()?;
    Ok(stats)
}

/// The bytes of a request, with its default headers.
fn request(step: &Step, client: &Client, words: &Words) -> Vec<u8> {
    let body = step.body.as_ref().map(|body| body.bytes(words));
    let mut lines: Vec<String> = vec![format!("Host: {}", client.host)];
    lines.extend(step.key.iter().map(|key| format!("X-API-Key: {key}")));
    let more = client.headers(step.kind, body.as_deref().unwrap_or_default());
    lines.extend(more.lines().map(str::to_owned));
    if let Some(body) = &body {
        lines.push(format!("Content-Length: {}", body.len()));
    }
    let name = |line: &str| {
        line.split(':')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    let own: Vec<String> = step.headers.iter().map(|line| line.text(words)).collect();
    for line in &own {
        let named = name(line.strip_prefix('-').unwrap_or(line));
        lines.retain(|other| name(other) != named);
    }
    lines.extend(own.into_iter().filter(|line| !line.starts_with('-')));
    let target = words.put_into(step.request.as_deref().unwrap_or_default());
    let mut head = format!("{target} HTTP/1.1\r\n");
    for line in lines {
        let _ = write!(head, "{line}\r\n");
    }
    [head.as_bytes(), b"\r\n", &body.unwrap_or_default()].concat()
}

/// Checks an answer against the allowed outcomes.
fn judge(expect: &Expect, answer: &Answer, words: &Words) -> Result<()> {
    let json = answer.json();
    let code = json["error"]["code"].as_i64();
    let failed = json["result"]["isError"] == true;
    let is_one = match answer {
        _ if wanted(expect).is_empty() => true,
        Answer::Http { status, .. } if expect.status.contains(status) => true,
        Answer::Http { .. } | Answer::Message(_) => {
            code.is_some_and(|code| expect.code.contains(&code))
                || expect.result && json["result"].is_object() && !failed
                || expect.failure && failed
        }
        Answer::Close(code) => expect.closed || expect.close.contains(code),
        Answer::Closed => expect.closed || expect.ends,
        // Only its text is checked.
        Answer::Heard(_) => false,
        Answer::Silence => expect.silence,
    };
    let text = answer.text();
    let says = expect.says.as_ref().map(|parts| parts.text(words));
    let lacks = expect.lacks.as_ref().map(|parts| parts.text(words));
    if !is_one {
        bail!("expected {}, but {}", wanted(expect), shown(answer));
    }
    if let Some(says) = says.filter(|says| !text.contains(says)) {
        bail!("{says:?} is missing: {}", shown(answer));
    }
    if let Some(lacks) = lacks.filter(|lacks| text.contains(lacks)) {
        bail!("{lacks:?} was said: {}", shown(answer));
    }
    Ok(())
}

/// The allowed outcomes as text.
fn wanted(expect: &Expect) -> String {
    let mut all = Vec::new();
    let mut add = |is_there, text: String| {
        if is_there {
            all.push(text);
        }
    };
    add(
        !expect.status.is_empty(),
        format!("status {:?}", expect.status),
    );
    add(!expect.code.is_empty(), format!("error {:?}", expect.code));
    add(
        !expect.close.is_empty(),
        format!("close {:?}", expect.close),
    );
    add(expect.closed || expect.ends, "the end".into());
    add(expect.result, "a result".into());
    add(expect.failure, "a tool's failure".into());
    add(expect.silence, "silence".into());
    all.join(" or ")
}

fn shown(answer: &Answer) -> String {
    let text = format!("{answer:?}");
    text.chars().take(SHOWN).collect()
}
