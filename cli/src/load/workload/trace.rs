//! Requests from a file: a mix that was recorded, or written by hand.
//!
//! Each line is a JSON object with `method` and `params`, as in JSON-RPC, and may have two more members: `at_ms`, when
//! the request was sent, in milliseconds since any instant; and `expect`, the text that a tool's answer must have. A
//! file that `MCPBOLT_TRACE` has written is read, too: of its lines, those that are requests of a client.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer;
use super::failure::Failure;
use super::link::Link;

/// The methods that are replayed. Others open, cancel or subscribe, which is not a matter of load.
const METHODS: [&str; 8] = [
    "tools/call",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];

#[derive(Deserialize)]
struct Line<'a> {
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    at_ms: Option<f64>,
    expect: Option<String>,
}

#[derive(Debug)]
struct Entry {
    method: String,
    params: Option<String>,
    expected: Option<String>,
}

/// The requests of a file, in order; after the last one comes the first one again.
#[derive(Debug)]
pub struct Replay {
    entries: Vec<Entry>,
}

impl Replay {
    /// The requests of a file, and when they were sent if each has its time.
    pub fn read(file: &Path) -> Result<(Self, Option<Vec<Duration>>)> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        Self::parse(&text).with_context(|| file.display().to_string())
    }

    fn parse(text: &str) -> Result<(Self, Option<Vec<Duration>>)> {
        let mut entries = Vec::new();
        let mut times = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let json = line.trim_start_matches(['<', '>', '-']).trim();
            if json.is_empty() {
                continue;
            }
            let line: Line<'_> =
                serde_json::from_str(json).with_context(|| format!("line {}", number + 1))?;
            let Some(method) = line.method.filter(|it| METHODS.contains(&it.as_str())) else {
                continue;
            };
            times.extend(line.at_ms);
            entries.push(Entry {
                method,
                params: line
                    .params
                    .map(|params| without_meta(params.get()))
                    .transpose()?,
                expected: line.expect,
            });
        }
        ensure!(!entries.is_empty(), "there is no request to replay");
        ensure!(
            times.is_empty() || times.len() == entries.len(),
            "some requests have at_ms and others have not"
        );
        ensure!(times.is_sorted(), "at_ms must not decrease");
        let since = |at: &f64| Duration::try_from_secs_f64((at - times[0]) / 1e3);
        let sent = times.iter().map(since).collect::<Result<Vec<_>, _>>()?;
        Ok((Self { entries }, Some(sent).filter(|sent| !sent.is_empty())))
    }

    pub fn kinds(&self) -> usize {
        self.entries.len()
    }

    pub async fn one(&self, link: &Link<'_>, number: u64) -> Result<(), Failure> {
        let turn = usize::try_from(number).unwrap_or_default() % self.entries.len();
        let Entry {
            method,
            params,
            expected,
        } = &self.entries[turn];
        let answer = link.converse(method, params.as_deref()).await?;
        if method == "tools/call" {
            let text = answer::text(&answer)?;
            if let Some(expected) = expected {
                answer::expect(&text, expected)?;
            }
        }
        Ok(())
    }
}

/// Params without `_meta`, which is that of another connection.
fn without_meta(params: &str) -> Result<String> {
    let mut params: serde_json::Map<String, serde_json::Value> = serde_json::from_str(params)?;
    params.remove("_meta");
    Ok(serde_json::Value::from(params).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_from_both_kinds_of_files() {
        let text = concat!(
            r#"-> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
            "\n",
            r#"<- {"jsonrpc":"2.0","id":1,"result":{}}"#,
            "\n\n",
            r#"-> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":2}}}"#,
            "\n",
            r#"{"method":"tools/list","expect":"x"}"#,
        );
        let (replay, times) = Replay::parse(text).unwrap();
        assert_eq!(times, None);
        let [call, list] = replay.entries.as_slice() else {
            panic!("{replay:?}")
        };
        assert_eq!(call.params.as_deref(), Some(r#"{"name":"a"}"#));
        assert_eq!(
            (list.params.as_deref(), list.expected.as_deref()),
            (None, Some("x"))
        );
    }

    #[test]
    fn times_are_counted_from_the_first_request() {
        let line = |at: f64| format!("{{\"method\":\"tools/list\",\"at_ms\":{at}}}\n");
        let (_, times) = Replay::parse(&(line(1000.0) + &line(1012.5))).unwrap();
        assert_eq!(times.unwrap(), [0, 12_500].map(Duration::from_micros));
        for (wrong, why) in [
            (line(2.0) + &line(1.0), "must not decrease"),
            (line(2.0) + r#"{"method":"tools/list"}"#, "others have not"),
            ("{}".to_owned(), "no request"),
            ("\n{".to_owned(), "line 2"),
        ] {
            let error = Replay::parse(&wrong).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
    }
}
