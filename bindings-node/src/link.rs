//! JavaScript's end of one connection.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mcpbolt::client::{Asking, Client};
use mcpbolt::connection::{Direction, Handle, RequestOptions};
use mcpbolt::error::RequestError;
use mcpbolt::io::Stop;
use mcpbolt::mcp::Method;
use mcpbolt::server::Live;
use napi::bindgen_prelude::Int32ArraySlice;
use napi::{Env, JsString};
use napi_derive::napi;

use crate::calls::Underway;
use crate::client::progress;
use crate::drain::{Kind, Rows, integers};
use crate::error::{self, Result};
use crate::inbox::{Event, Inbox};
use crate::offer::Templates;
use crate::outputs::Outputs;
use crate::questions::Questions;
use crate::requests::{Outcome, Requests, Task, Way};
use crate::slots::Slots;
use crate::submit;

/// A string kept between drains is given back when it has grown beyond this many bytes.
const KEEP_BYTES: usize = 1 << 20;

/// One connection, as the face holds it. All of it is used on one JavaScript thread.
#[napi]
pub struct Link {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) handle: Handle,
    stop: Option<Stop>,
    /// What a server offers.
    live: Option<Arc<Live<Templates>>>,
    /// What a client asks by.
    client: Option<(Client, Arc<Questions>)>,
    pub(crate) calls: Slots<Underway>,
    pub(crate) requests: Requests,
    pub(crate) outputs: Outputs,
    text: String,
}

/// Timeouts in ms, whether progress is wanted, more members of `_meta`.
type Options = (Option<f64>, Option<f64>, bool, Option<String>);

impl Link {
    pub fn new(inbox: Arc<Inbox>, handle: Handle, stop: Option<Stop>) -> Self {
        Self {
            inbox,
            handle,
            stop,
            live: None,
            client: None,
            calls: Slots::default(),
            requests: Requests::default(),
            outputs: Outputs::default(),
            text: String::new(),
        }
    }

    /// That of a server.
    pub fn of_server(mut self, live: Arc<Live<Templates>>) -> Self {
        self.live = Some(live);
        self
    }

    /// That of a client.
    pub fn of_client(mut self, client: Client, questions: Arc<Questions>) -> Self {
        self.client = Some((client, questions));
        self
    }

    pub(crate) fn client(&self) -> Result<&Client> {
        let client = self.client.as_ref().map(|(client, _)| client);
        let misuse = RequestError::Misuse("a server has nobody to ask but in its handlers");
        client.ok_or_else(|| error::request(&misuse))
    }

    /// Waits for what `task` gives; the number under which it will come.
    pub(crate) fn wait(&mut self, make: impl FnOnce(u32) -> Task) -> u32 {
        let number = self.requests.reserve();
        let way = Way::Task(make(number));
        self.requests.wait(number, way, &self.inbox);
        number
    }

    fn send(
        &mut self,
        method: &str,
        params: Option<&str>,
        (timeout_ms, max_timeout_ms, wants_progress, meta): Options,
        adjust: impl FnOnce(&mut Asking),
    ) -> Result<u32> {
        let timeout = timeout_ms.map(duration).transpose()?;
        let max_timeout = max_timeout_ms.map(duration).transpose()?;
        let number = self.requests.reserve();
        let options = RequestOptions {
            timeout,
            max_timeout,
            progress: wants_progress.then(|| progress(self.inbox.clone(), number)),
            meta: meta.map(Into::into),
            ..RequestOptions::default()
        };
        let asking = self.client().and_then(|client| {
            let asking = client.request(method, params, options);
            asking.map_err(|why| error::request(&why))
        });
        match asking {
            Ok(mut asking) => {
                adjust(&mut asking);
                self.requests.wait(number, Way::Asking(asking), &self.inbox);
                Ok(number)
            }
            Err(why) => {
                self.requests.forget(number);
                Err(why)
            }
        }
    }

    fn write_event(&mut self, rows: &mut Rows<'_>, event: Event) {
        match event {
            Event::Cancelled(key, reason) => {
                if let Some(number) = self.calls.position(|call| call.is(key)) {
                    self.calls.remove(number);
                    rows.text(Kind::Cancelled, number, 0, |out| {
                        out.push_str(reason.as_deref().unwrap_or_default());
                    });
                }
            }
            Event::Initialized(json) => {
                rows.text(Kind::Initialized, 0, 0, |out| out.push_str(&json));
            }
            Event::Listening(number, id) => {
                rows.text(Kind::Listening, number, 0, |out| {
                    out.push_str(&id.to_string());
                });
            }
            Event::Asked(number, topic, json) => {
                rows.text(Kind::Asked, number, topic as u32, |out| out.push_str(&json));
            }
            Event::RootsChanged => rows.bare(Kind::RootsChanged, 0),
            Event::Withdrawn(number) => rows.bare(Kind::Withdrawn, number),
            Event::Opened(json) => rows.text(Kind::Opened, 0, 0, |out| out.push_str(&json)),
            Event::Ready(number) => {
                let outcome = self.requests.look(number, &self.inbox);
                write_answer(rows, number, outcome);
            }
            Event::Answered(number) => write_answer(rows, number, self.requests.take(number)),
            Event::Progress(number, json) => {
                rows.text(Kind::Progress, number, 0, |out| out.push_str(&json));
            }
            Event::Notification(json) => {
                rows.text(Kind::Notification, 0, 0, |out| out.push_str(&json));
            }
            Event::Change(json) => {
                rows.text(Kind::Notification, 0, 0, |out| out.push_str(&json));
            }
            Event::Line(line) => rows.text(Kind::Line, 0, 0, |out| out.push_str(&line)),
            Event::Traced(direction, frame) => {
                let target = u32::from(direction == Direction::Out);
                rows.text(Kind::Traced, 0, target, |out| out.push_str(&frame));
            }
            Event::Closed(why) => rows.text(Kind::Closed, 0, 0, |out| {
                error::connection_json(out, &why);
            }),
            Event::Ended(json) => rows.text(Kind::Ended, 0, 0, |out| out.push_str(&json)),
        }
    }
}

fn write_answer(rows: &mut Rows<'_>, number: u32, outcome: Option<Outcome>) {
    match outcome {
        None => {}
        Some(Ok(answer)) => rows.text(Kind::Answer, number, 0, |out| {
            out.push_str(answer.json());
        }),
        Some(Err(why)) => rows.text(Kind::Failure, number, 0, |out| {
            error::request_json(out, &why);
        }),
    }
}

#[napi]
impl Link {
    /// What waits, as the rows that [`drain`](crate::drain) describes.
    #[napi]
    pub fn drain<'e>(
        &mut self,
        env: &'e Env,
        mut table: Int32ArraySlice<'_>,
    ) -> Result<JsString<'e>> {
        let table = integers(&mut table);
        let (mut events, mut calls) = (Vec::new(), Vec::new());
        let more = self
            .inbox
            .take(Rows::capacity(table), &mut events, &mut calls);
        let mut text = std::mem::take(&mut self.text);
        let mut rows = Rows::new(table, &mut text);
        for event in events {
            self.write_event(&mut rows, event);
        }
        for arrived in calls {
            if arrived.call.cancel.is_cancelled() {
                continue;
            }
            let Some(live) = &self.live else { continue };
            let number = self.calls.vacant();
            rows.call(number, &arrived.call, live);
            self.calls.insert(Underway::new(arrived, &self.inbox));
        }
        let string = rows.finish(env, more);
        if text.capacity() <= KEEP_BYTES {
            self.text = text;
        }
        string
    }

    /// Hands over what handlers gave back, as the rows that [`submit`](crate::submit) describes.
    #[napi]
    pub fn submit(&mut self, text: String, table: &[f64]) {
        let live = self.live.as_deref();
        submit::submit(&self.handle, live, &mut self.calls, &text, table);
    }

    /// Sends a request; gives the number under which its answer will come.
    #[napi]
    pub fn request(
        &mut self,
        method: String,
        params: Option<String>,
        timeout_ms: Option<f64>,
        max_timeout_ms: Option<f64>,
        wants_progress: bool,
        meta: Option<String>,
    ) -> Result<u32> {
        let options = (timeout_ms, max_timeout_ms, wants_progress, meta);
        self.send(&method, params.as_deref(), options, |_| ())
    }

    /// The same for the call of a tool that may become a task: then the answer is that it has.
    #[napi]
    pub fn start_tool(
        &mut self,
        params: String,
        timeout_ms: Option<f64>,
        max_timeout_ms: Option<f64>,
        wants_progress: bool,
        meta: Option<String>,
    ) -> Result<u32> {
        let options = (timeout_ms, max_timeout_ms, wants_progress, meta);
        let method = Method::CallTool.name();
        self.send(method, Some(&params), options, Asking::hand_over)
    }

    /// Gives up what is waited for, and tells the peer.
    #[napi]
    pub fn cancel(&mut self, number: u32, reason: Option<String>) {
        self.requests.cancel(number, reason.as_deref());
    }

    /// What JavaScript gave to what the server asked: a result, or the text of a failure.
    #[napi]
    pub fn answer(&self, number: u32, is_result: bool, text: String) {
        if let Some((_, questions)) = &self.client {
            questions.answer(number, if is_result { Ok(text) } else { Err(text) });
        }
    }

    /// Sends a notification.
    #[napi]
    pub fn notify(&self, method: String, params: Option<String>) {
        // The face writes the params itself: they are an object.
        let _ = self.handle.notify(&method, params.as_deref());
    }

    /// Answers that nobody waited for, and frames that were no messages, since the start.
    #[napi]
    pub fn strays(&self) -> f64 {
        self.handle.stray_count() as f64
    }

    /// Closes the connection once what is queued is written.
    #[napi]
    pub fn close(&self) {
        self.handle.close();
    }

    /// Ends a server's loop in good order, or a client's with its child.
    #[napi]
    pub fn stop(&self) {
        match &self.stop {
            Some(stop) => stop.stop(),
            None => self.handle.close(),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The environment is torn down, or nobody can reach the connection any more.
        self.stop();
    }
}

/// Milliseconds as JavaScript counts them.
pub fn duration(ms: f64) -> Result<Duration> {
    let misuse = |_| error::error("ERR_MCP_MISUSE", format!("{ms} ms is no duration"));
    Duration::try_from_secs_f64(ms / 1000.0).map_err(misuse)
}

/// Starts a thread of the engine's.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(run).map(drop).map_err(|why| error::io(&why))
}
