//! Runs a program for a single action, and captures its stderr.

use std::sync::{Arc, Mutex};

use super::child::{ChildCommand, Stderr};
use crate::client::{ActionAnswer, ActionFailure, Client, RetryPolicy, block_on};
use crate::connection::OpeningMode;
use crate::error::{ConnectionError, RequestError};
use crate::limits::MAX_CAPTURED_BYTES;
use crate::sync::lock;

impl ChildCommand {
    /// Starts the program for one action, and waits for its answer and its end (R-ACT-20). The last
    /// [`MAX_CAPTURED_BYTES`] that it writes to stderr become the member `stderr` in the metadata of
    /// the answer, or of its error (R-STD-14). If there is no answer, they are part of the failure,
    /// [`ActionFailure::Silent`]. Blocks.
    ///
    /// ```no_run
    /// use mcpbolt::io::ChildCommand;
    /// use serde_json::json;
    /// let answer = ChildCommand::new("path/to/tool").act("file_system.read", &json!({"path": "a.txt"}))?;
    /// println!("{} {}", answer.data(), answer.metadata);
    /// # Ok::<(), mcpbolt::client::ActionFailure>(())
    /// ```
    ///
    /// # Errors
    /// See [`ActionFailure`].
    pub fn act(
        self,
        action: &str,
        params: &impl serde::Serialize,
    ) -> Result<ActionAnswer, ActionFailure> {
        let said = Arc::new(Mutex::new(String::new()));
        let into = said.clone();
        let command = self.stderr(Stderr::Lines(Box::new(move |line| keep(&into, line))));
        let outcome = command.ask(action, params);
        let said = std::mem::take(&mut *lock(&said));
        match outcome {
            Ok(mut answer) => {
                answer.metadata = noted(&answer.metadata, said);
                Ok(answer)
            }
            Err(ActionFailure::Answered(error)) => {
                let metadata = noted(error.metadata(), said);
                Err(ActionFailure::Answered(error.with_metadata(metadata)))
            }
            Err(ActionFailure::Request(error)) if !said.is_empty() => Err(ActionFailure::Silent {
                error,
                stderr: said,
            }),
            Err(failure) => Err(failure),
        }
    }

    /// Also waits for the end of the program.
    fn ask(
        self,
        action: &str,
        params: &impl serde::Serialize,
    ) -> Result<ActionAnswer, ActionFailure> {
        let failed = |error: std::io::Error| {
            let why = ConnectionError::Io(error.kind());
            ActionFailure::from(RequestError::Closed(why))
        };
        let builder = Client::builder(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        let started = builder.opening(OpeningMode::Actions).start(self);
        let (client, running) = started.map_err(failed)?;
        let client = block_on(client.until_open()).map_err(failed)?;
        let call = client.action(action, params).retry(RetryPolicy::NEVER);
        let outcome = call.wait();
        // A failure to end properly does not change the answer.
        let _ = running.shutdown();
        outcome
    }
}

/// Keeps the end of the captured text.
fn keep(said: &Mutex<String>, line: &str) {
    let mut said = lock(said);
    said.push_str(line);
    said.push('\n');
    let over = said.len().saturating_sub(MAX_CAPTURED_BYTES);
    let over = said.ceil_char_boundary(over);
    said.drain(..over);
}

/// Metadata, a JSON object, with the captured text added.
fn noted(metadata: &str, said: String) -> String {
    match serde_json::from_str(metadata) {
        Ok(serde_json::Value::Object(mut members)) if !said.is_empty() => {
            members.insert("stderr".to_owned(), said.into());
            serde_json::Value::from(members).to_string()
        }
        _ => metadata.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-STD-14
    #[test]
    fn the_end_of_what_was_said_is_kept() {
        let said = Mutex::default();
        keep(&said, "é");
        keep(&said, &"x".repeat(MAX_CAPTURED_BYTES - 3));
        let kept = said.into_inner().unwrap();
        assert_eq!(kept.len(), MAX_CAPTURED_BYTES - 1, "no half of a character");
        assert!(kept.starts_with("\nx"));
    }
}
