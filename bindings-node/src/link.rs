//! JavaScript's end of one connection of a client, or of all connections of a server.

use std::collections::HashMap;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};

use mcpbolt::client::Client;
use mcpbolt::error::RequestError;
use mcpbolt::io::http::Relay;
use mcpbolt::io::{Counts, StdioHelper, Stop, WireHandle};
use mcpbolt::server::{Hosting, SharedRegistry};
use napi::bindgen_prelude::Int32ArraySlice;
use napi::{Env, JsString};
use napi_derive::napi;
use serde::Serialize;
use serde_json::json;

use crate::arrived::Arrived;
use crate::caller::Caller;
use crate::calls::{Calls, Underway};
use crate::drain::{Rows, Texts, integers};
use crate::error::{self, Failure, Result};
use crate::inbox::{Event, Inbox, Row};
use crate::json;
use crate::kinds::Inbound;
use crate::outbox::Outbox;
use crate::outputs::Outputs;
use crate::panics::{self, quietly};
use crate::questions::Questions;
use crate::requests::{Outcome, Reporter, Requests, Task, Way};
use crate::served::Templates;
use crate::submit;
use crate::telemetry::sending;
use crate::utf16;

/// Capacity in bytes above which the memory of a submitted text is freed.
const KEEP_BYTES: usize = 4 << 20;

/// The native part of `Link` in `face/link.ts`. Used on one JavaScript thread only.
#[napi]
pub struct Link {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) side: Side,
    stop: Box<dyn Fn()>,
    /// Ends what the link is connected to at once: on stdin and stdout only.
    finish: Option<Finish>,
    /// Writes answers on JavaScript's thread: on stdin and stdout only.
    helper: Option<StdioHelper>,
    /// The counters of a server at an address.
    counts: Option<Box<dyn Fn() -> Counts>>,
    pub(crate) calls: Calls,
    pub(crate) requests: Requests,
    pub(crate) outputs: Outputs,
    /// On a server: the clients that have opened and not disconnected.
    pub(crate) clients: HashMap<u64, Caller>,
    outbox: Arc<Outbox>,
    /// Buffers of the last drain, reused by the next one.
    texts: Texts,
    taken: (Vec<Event>, Vec<Arrived>),
    /// The text of the last submit, whose memory the next one reuses.
    submitted: Vec<u8>,
    /// The id of the child process, if there is one.
    pub(crate) pid: Option<u32>,
    /// What a client of a server in this process is connected to.
    held: Option<Arc<dyn Hosting>>,
}

/// The kind of a link.
pub enum Side {
    /// A server, with its registry.
    Server(Arc<SharedRegistry<Templates>>),
    Client(Asker),
    /// A wire, which carries messages unchanged.
    Wire(WireHandle),
    /// A wire over HTTP.
    Relay(Arc<Relay>),
    /// A chain, whose messages take another way.
    Front,
}

/// How stdin and stdout are ended at once.
pub struct Finish {
    pub stop: Stop,
    /// Disconnected when the engine's thread has ended.
    pub ended: Receiver<()>,
}

/// A client's requests to the server, and the server's requests to the client.
pub struct Asker {
    /// Set once the connection is open, before JavaScript is told.
    pub client: Arc<OnceLock<Client>>,
    pub questions: Arc<Questions>,
}

impl Link {
    /// `stop` gracefully ends what the link is connected to.
    pub fn new(inbox: Arc<Inbox>, side: Side, stop: impl Fn() + 'static) -> Self {
        Self {
            inbox,
            side,
            stop: Box::new(stop),
            finish: None,
            helper: None,
            counts: None,
            calls: Calls::default(),
            requests: Requests::default(),
            outputs: Outputs::default(),
            clients: HashMap::new(),
            outbox: Arc::default(),
            texts: Texts::default(),
            taken: Default::default(),
            submitted: Vec::new(),
            pid: None,
            held: None,
        }
    }

    /// Keeps a server of this process as long as there is this link.
    pub fn holding(mut self, hosting: Arc<dyn Hosting>) -> Self {
        self.held = Some(hosting);
        self
    }

    /// Sets the id of the child process.
    pub fn of_process(mut self, pid: u32) -> Self {
        self.pid = Some(pid);
        self
    }

    /// Sets what ends it at once.
    pub fn finished_by(mut self, finish: Finish) -> Self {
        self.finish = Some(finish);
        self
    }

    /// Sets what writes answers on JavaScript's thread.
    pub fn helping(mut self, helper: StdioHelper) -> Self {
        self.helper = Some(helper);
        self
    }

    /// `counts` returns the server's counters.
    pub fn counting(mut self, counts: impl Fn() -> Counts + 'static) -> Self {
        self.counts = Some(Box::new(counts));
        self
    }

    pub(crate) fn client(&self) -> Result<&Client> {
        let misuse = match &self.side {
            Side::Client(asker) => match asker.client.get() {
                Some(client) => return Ok(client),
                None => "the connection is not open yet",
            },
            Side::Server(_) => "a server asks its clients in its handlers, through their context",
            Side::Front => "a front passes on what its clients ask, and asks nothing itself",
            Side::Wire(_) | Side::Relay(_) => "a wire carries messages unchanged and sends none",
        };
        Err(error::request(RequestError::Misuse(misuse)))
    }

    /// Awaits a task; returns the number under which its outcome will come.
    pub(crate) fn wait(&mut self, env: Env, make: impl FnOnce(Reporter) -> Task) -> u32 {
        let number = self.requests.reserve();
        let way = Way::Task(make(Reporter::new(&self.inbox, number)));
        sending(env, 0, || self.requests.wait(number, way, &self.inbox));
        number
    }

    /// Runs a request of the client, and writes its result as JSON; returns the number under which the result
    /// will come.
    pub(crate) fn run<T, F>(
        &mut self,
        env: Env,
        make: impl FnOnce(Client, Reporter) -> F,
    ) -> Result<u32>
    where
        T: Serialize,
        F: Future<Output = std::result::Result<T, RequestError>> + Send + 'static,
    {
        let client = self.client()?.clone();
        Ok(self.wait(env, |reporter| {
            let made = make(client, reporter);
            Box::pin(async move { json::result(&made.await?) })
        }))
    }

    /// Writes the row of an event. Adds calls that were cancelled to `given_up`.
    fn write_event(
        &mut self,
        env: Env,
        rows: &mut Rows<'_>,
        event: Event,
        given_up: &mut Vec<u32>,
    ) {
        match event {
            Event::Row(row) => rows.row(&row),
            Event::Cancelled(call, reason) => {
                if let Some(number) = self.calls.number(call) {
                    given_up.push(number);
                    rows.text(Inbound::Cancelled, number, 0, |out| {
                        out.push_str(reason.as_deref().unwrap_or_default());
                    });
                }
            }
            Event::Initialized(caller) => {
                rows.text(Inbound::Initialized, 0, 0, |out| {
                    out.push_str(&introduction(&caller));
                });
                self.clients.insert(caller.number, caller);
            }
            Event::Left(caller, why) => {
                self.clients.remove(&caller.number);
                let (why, who) = (Failure::of_connection(&why), introduction(&caller));
                rows.text(Inbound::Left, 0, 0, |out| {
                    out.push_str(&format!("[{},{who}]", json::text(&why)));
                });
            }
            Event::Ready(number) => {
                let look = || self.requests.look(number, &self.inbox);
                let outcome = sending(env, number, look);
                write_answer(rows, number, outcome);
            }
            Event::Answered(number) => write_answer(rows, number, self.requests.take(number)),
            Event::Change(json) => {
                rows.text(Inbound::Notification, 0, 0, |out| out.push_str(&json));
            }
            Event::Frame(of, message) => {
                let frame = String::from_utf8_lossy(message.bytes());
                rows.text(Inbound::Frame, of, 0, |out| out.push_str(&frame));
                match &self.side {
                    Side::Wire(wire) => wire.was_read(message.bytes().len()),
                    Side::Relay(relay) => relay.was_read(message.bytes().len()),
                    _ => {}
                }
            }
        }
    }
}

/// A client's description of itself from when it connected, as JSON; `null` without one.
pub fn introduction(caller: &Caller) -> String {
    caller.introduction().unwrap_or_else(|| "null".to_owned())
}

fn write_answer(rows: &mut Rows<'_>, number: u32, outcome: Option<Outcome>) {
    match outcome {
        None => {}
        Some(Ok(answer)) => rows.text(Inbound::Answer, number, 0, |out| {
            out.push_str(answer.json());
        }),
        Some(Err(why)) => rows.row(&failed(number, &Failure::of_request(&why))),
    }
}

fn failed(number: u32, failure: &Failure) -> Row {
    Row {
        kind: Inbound::Failure,
        number,
        target: 0,
        text: json::text(failure),
    }
}

#[napi]
impl Link {
    /// Takes what waits, as the rows that [`drain`](crate::drain) describes.
    #[napi(catch_unwind)]
    pub fn drain<'e>(
        &mut self,
        env: &'e Env,
        mut table: Int32ArraySlice<'_>,
    ) -> Result<JsString<'e>> {
        panics::point("drain");
        let table = integers(&mut table);
        let (mut events, mut calls) = std::mem::take(&mut self.taken);
        let more = self
            .inbox
            .take(Rows::capacity(table), &mut events, &mut calls);
        let mut texts = std::mem::take(&mut self.texts);
        let mut rows = Rows::new(table, &mut texts);
        let mut given_up = Vec::new();
        for event in events.drain(..) {
            let number = event.request();
            let written = rows.whole(|rows| {
                panics::point("event");
                self.write_event(*env, rows, event, &mut given_up);
            });
            if let (Err(panic), Some(number)) = (written, number) {
                self.requests.forget(number);
                rows.row(&failed(number, &Failure::new("ERR_MCP_INTERNAL", panic)));
            }
        }
        if let Side::Server(live) = &self.side {
            for arrived in calls.drain(..) {
                let number = self.calls.vacant();
                let written = rows.whole(|rows| {
                    panics::point("call");
                    rows.call(number, &arrived.call, live)
                });
                match written {
                    Ok(aside) => {
                        let call = Underway::new(arrived, aside, &self.inbox);
                        self.calls.insert(call.id(), call);
                    }
                    Err(panic) => arrived.fail(&panic),
                }
            }
        }
        // Only now, so that no call of this drain gets such a number: JavaScript may still use it for the
        // cancelled call, until it reaches the row of the cancellation.
        for number in given_up {
            self.calls.remove(number);
        }
        let string = rows.finish(env, more);
        self.texts = texts;
        self.taken = (events, calls);
        string
    }

    /// Submits what handlers returned, as the rows that [`submit`](crate::submit) describes; `at_once` if the
    /// next call must not overtake it.
    #[napi(catch_unwind)]
    pub fn submit(&mut self, text: JsString<'_>, table: &[f64], at_once: bool) -> Result<()> {
        let Side::Server(live) = &self.side else {
            return Ok(());
        };
        let units = submit::units(table);
        let text = utf16::read(&text, units, &mut self.submitted).map_err(error::internal)?;
        let said = submit::submit(live, &mut self.calls, text, units, table);
        if self.submitted.capacity() > KEEP_BYTES {
            self.submitted = Vec::new();
        }
        panics::point("submit");
        match (&self.helper, self.inbox.runtime()) {
            (Some(helper), _) => helper.run(|| {
                for mut replies in said {
                    replies.submit_last();
                }
            }),
            // Dropping replies submits them.
            (None, None) => drop(said),
            (None, Some(runtime)) => self.outbox.send(said, runtime),
        }
        if at_once {
            self.outbox.flush();
        }
        Ok(())
    }

    /// Whether a client has subscriptions, or listens.
    #[napi(catch_unwind)]
    pub fn has_subscriptions(&self) -> bool {
        self.client().is_ok_and(Client::has_subscriptions)
    }

    /// The counters of a server at an address, as JSON.
    #[napi(catch_unwind)]
    pub fn counts(&self) -> Option<String> {
        let counts = self.counts.as_ref()?();
        Some(
            json!({
                "openConnections": counts.open_connections,
                "connections": counts.connections,
                "webSockets": counts.websockets,
                "httpRequests": counts.http_requests,
                "httpErrors": counts.http_errors,
                "bytesRead": counts.bytes_read,
                "bytesWritten": counts.bytes_written,
            })
            .to_string(),
        )
    }

    /// Ends stdin and stdout without waiting for handlers; with `waits`, returns when what was submitted has been
    /// written, or its reader has taken nothing for seconds.
    #[napi(catch_unwind)]
    pub fn finish(&self, waits: bool) {
        let Some(finish) = &self.finish else {
            return;
        };
        finish.stop.finish();
        if waits {
            // Fails once the engine's thread has ended, which bounds the wait itself.
            let _ = finish.ended.recv();
        }
    }

    /// Ends a server gracefully, or a client with its child.
    #[napi(catch_unwind)]
    pub fn stop(&mut self) {
        quietly(|| {
            panics::point("stop");
            (self.stop)();
            self.held = None;
        });
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // JavaScript's environment is torn down, or nothing refers to the connection any more.
        self.stop();
    }
}
