//! The action dialect: the example server in each language, called by the example client in each language.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::columns::{align, millis};
use crate::language::Language;
use crate::repo;
use crate::together::Programs;

/// The expected output of a client: the answers in the dialect's document.
const EXPECTED: &str = "corpus/actions_called.jsonl";

/// One server, and the outcome of each client.
pub struct Row {
    server: Language,
    clients: Vec<Result<Duration>>,
}

impl Row {
    /// Whether every client got the right answers.
    pub fn is_clean(&self) -> bool {
        self.clients.iter().all(Result::is_ok)
    }
}

/// Runs every pair of server and client.
pub fn play(built: &Programs) -> Result<Vec<Row>> {
    let expected = lines(&std::fs::read_to_string(repo::root().join(EXPECTED))?)?;
    let programs = Language::ALL.map(|language| (language, built.words(language, "actions")));
    let rows = programs.iter().map(|(server, words)| {
        let serving = Serving::start(words)?;
        let call =
            |(_, client): &(Language, Vec<String>)| called(client, &serving.address, &expected);
        let clients = programs.iter().map(call).collect();
        Ok(Row {
            server: *server,
            clients,
        })
    });
    rows.collect()
}

/// A running server; ends when dropped.
struct Serving {
    process: Child,
    address: String,
}

impl Serving {
    fn start(words: &[String]) -> Result<Self> {
        let process = Command::new(&words[0])
            .args(&words[1..])
            .arg("http://127.0.0.1:0/mcp")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut serving = Self {
            process,
            address: String::new(),
        };
        let stderr = serving.process.stderr.take().context("no stderr")?;
        let mut stderr = BufReader::new(stderr);
        let mut line = String::new();
        stderr.read_line(&mut line)?;
        // Later output must be read, or a full pipe would block the server.
        thread::spawn(move || io::copy(&mut stderr, &mut io::sink()));
        // The server prints a line that ends with its address.
        let address = line.split_whitespace().last();
        serving.address = address.context("the server said nothing")?.to_owned();
        Ok(serving)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a client and checks its answers. Returns how long it ran.
fn called(words: &[String], address: &str, expected: &[Value]) -> Result<Duration> {
    let begin = Instant::now();
    let out = Command::new(&words[0])
        .args(&words[1..])
        .args(["call", address])
        .output()?;
    let took = begin.elapsed();
    ensure!(
        out.status.success(),
        "{}: {}",
        out.status,
        String::from_utf8_lossy(&out.stderr)
    );
    let found = lines(std::str::from_utf8(&out.stdout)?)?;
    if let Some((found, expected)) = found.iter().zip(expected).find(|(a, b)| a != b) {
        bail!("it was told {found}, not {expected}");
    }
    ensure!(
        found.len() == expected.len(),
        "it was told {} things, not {}",
        found.len(),
        expected.len()
    );
    Ok(took)
}

/// Parses lines of JSON. All numbers become floats, so that 1 equals 1.0.
fn lines(text: &str) -> Result<Vec<Value>> {
    let read = |line: &str| Ok(as_floats(serde_json::from_str(line)?));
    text.lines().map(read).collect()
}

fn as_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(all) => all.into_iter().map(as_floats).collect(),
        Value::Object(all) => {
            let members = all
                .into_iter()
                .map(|(name, value)| (name, as_floats(value)));
            Value::Object(members.collect())
        }
        other => other,
    }
}

/// A row for each server, with failures below.
pub fn table(rows: &[Row]) -> String {
    let cell = |outcome: &Result<Duration>| match outcome {
        Ok(took) => format!("right, {}", millis(*took)),
        Err(_) => "WRONG".to_owned(),
    };
    let mut cells = vec![
        [
            "action server",
            "rust client",
            "python client",
            "node client",
        ]
        .map(str::to_owned),
    ];
    let mut notes = String::new();
    for row in rows {
        let name = row.server.name();
        let mut line = [
            format!("mcpbolt {name}"),
            String::new(),
            String::new(),
            String::new(),
        ];
        for (place, outcome) in row.clients.iter().enumerate() {
            line[place + 1] = cell(outcome);
            if let Err(error) = outcome {
                let client = Language::ALL[place].name();
                notes.push_str(&format!(
                    "actions: {client} client of the {name} server: {error:#}\n"
                ));
            }
        }
        cells.push(line);
    }
    align(&cells, 1) + &notes
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_wrong_answer_is_shown_and_told() {
        let rows = [Row {
            server: Language::Node,
            clients: vec![
                Ok(Duration::from_millis(5)),
                Err(anyhow!("it was told 3, not 8")),
            ],
        }];
        assert!(!rows[0].is_clean());
        let table = table(&rows);
        assert!(table.contains("right, 5.0 ms          WRONG"), "{table}");
        assert!(
            table.contains("python client of the node server: it was told 3, not 8"),
            "{table}"
        );
    }

    #[test]
    fn numbers_are_told_apart_by_value() {
        let [one, other] = [r#"{"result": 8}"#, r#"{"result":8.0}"#].map(|text| lines(text).ok());
        assert_eq!(one, other);
        assert_ne!(one, lines(r#"{"result": 8.5}"#).ok());
    }
}
