//! Options of a client's requests: timeouts, progress, `_meta`.

use std::sync::Arc;
use std::time::Duration;

use mcpbolt::client::CallTool;
use mcpbolt::connection::{self, Progress};
use pyo3::prelude::*;
use serde_json::value::RawValue;

use crate::client_events::ClientEvent;
use crate::inbox::Inbox;
use crate::settings::seconds;

/// The Python `RequestOptions`. Times are in seconds; `meta` is a JSON object.
#[derive(Default, FromPyObject)]
pub struct RequestOptions {
    timeout: Option<f64>,
    max_timeout: Option<f64>,
    on_progress: Option<Py<PyAny>>,
    meta: Option<String>,
}

impl RequestOptions {
    fn times(&self) -> PyResult<[Option<Duration>; 2]> {
        let time = |given: Option<f64>| given.map(seconds).transpose();
        Ok([time(self.timeout)?, time(self.max_timeout)?])
    }

    /// The options for any request, and its progress callback.
    pub fn of_request(
        self,
        number: u64,
        inbox: &Arc<Inbox<ClientEvent>>,
    ) -> PyResult<(connection::RequestOptions, Option<Py<PyAny>>)> {
        let [timeout, max_timeout] = self.times()?;
        let mut options = connection::RequestOptions {
            timeout,
            max_timeout,
            meta: self.meta.map(Into::into),
            ..connection::RequestOptions::default()
        };
        if self.on_progress.is_some() {
            options.progress = Some(Arc::new(report(number, inbox)));
        }
        Ok((options, self.on_progress))
    }

    /// Applies the options to a tool call; returns it with its progress callback.
    pub fn of_call(
        self,
        mut call: CallTool,
        number: u64,
        inbox: &Arc<Inbox<ClientEvent>>,
    ) -> PyResult<(CallTool, Option<Py<PyAny>>)> {
        let [timeout, max_timeout] = self.times()?;
        if let Some(timeout) = timeout {
            call = call.timeout(timeout);
        }
        if let Some(timeout) = max_timeout {
            call = call.max_timeout(timeout);
        }
        if let Some(meta) = self.meta.map(RawValue::from_string).and_then(Result::ok) {
            call = call.meta(&meta);
        }
        if self.on_progress.is_some() {
            call = call.on_progress(report(number, inbox));
        }
        Ok((call, self.on_progress))
    }
}

/// Makes a function that passes progress on to the event loop.
fn report(
    number: u64,
    inbox: &Arc<Inbox<ClientEvent>>,
) -> impl Fn(Progress<'_>) + Send + Sync + 'static {
    let inbox = inbox.clone();
    move |news| {
        let sentence = news.message.map(str::to_owned);
        inbox.push(ClientEvent::Progress(
            number,
            news.progress,
            news.total,
            sentence,
        ));
    }
}
