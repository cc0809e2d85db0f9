//! JavaScript's end of one connection of a client, or of all connections of a server.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use mcpbolt::client::Client;
use mcpbolt::connection::Direction;
use mcpbolt::error::RequestError;
use mcpbolt::io::{Counts, WireHandle};
use mcpbolt::server::Live;
use napi::bindgen_prelude::Int32ArraySlice;
use napi::{Env, JsString};
use napi_derive::napi;
use serde_json::json;

use crate::caller::Caller;
use crate::calls::{Arrived, Calls, Underway};
use crate::drain::{Kind, Rows, Texts, integers};
use crate::error::{self, Result};
use crate::inbox::{Event, Inbox};
use crate::offer::Templates;
use crate::outbox::Outbox;
use crate::outputs::Outputs;
use crate::panics::{self, quietly};
use crate::questions::Questions;
use crate::relay::Carrying;
use crate::requests::{Outcome, Requests, Task, Way};
use crate::submit;

/// The native part of `Link` in `face/link.ts`. Used on one JavaScript thread only.
#[napi]
pub struct Link {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) side: Side,
    stop: Box<dyn Fn()>,
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
    /// The id of the child process, if there is one.
    pub(crate) pid: Option<u32>,
}

/// The kind of a link.
pub enum Side {
    /// A server, with its registry.
    Server(Arc<Live<Templates>>),
    Client(Asker),
    /// A wire, which carries messages unchanged.
    Wire(WireHandle),
    /// A wire over HTTP.
    Relay(Carrying),
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
            counts: None,
            calls: Calls::default(),
            requests: Requests::default(),
            outputs: Outputs::default(),
            clients: HashMap::new(),
            outbox: Arc::default(),
            texts: Texts::default(),
            taken: Default::default(),
            pid: None,
        }
    }

    /// Sets the id of the child process.
    pub fn of_process(mut self, pid: u32) -> Self {
        self.pid = Some(pid);
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
            Side::Server(_) => "a server has nobody to ask but in its handlers",
            Side::Wire(_) | Side::Relay(_) => "a wire carries messages as they are",
        };
        Err(error::request(&RequestError::Misuse(misuse)))
    }

    /// Awaits `task`; returns the number under which its outcome will come.
    pub(crate) fn wait(&mut self, make: impl FnOnce(u32) -> Task) -> u32 {
        let number = self.requests.reserve();
        let way = Way::Task(make(number));
        self.requests.wait(number, way, &self.inbox);
        number
    }

    /// Writes the row of an event. Adds calls that were cancelled to `given_up`.
    fn write_event(&mut self, rows: &mut Rows<'_>, event: Event, given_up: &mut Vec<u32>) {
        match event {
            Event::Cancelled(call, reason) => {
                if let Some(number) = self.calls.number(call) {
                    given_up.push(number);
                    rows.text(Kind::Cancelled, number, 0, |out| {
                        out.push_str(reason.as_deref().unwrap_or_default());
                    });
                }
            }
            Event::Initialized(caller) => {
                rows.text(Kind::Initialized, 0, 0, |out| {
                    out.push_str(&said_by(&caller));
                });
                self.clients.insert(caller.number, caller);
            }
            Event::RootsChanged(caller) => rows.text(Kind::RootsChanged, 0, 0, |out| {
                out.push_str(&said_by(&caller));
            }),
            Event::Left(caller, why) => {
                self.clients.remove(&caller.number);
                rows.text(Kind::Left, 0, 0, |out| {
                    out.push('[');
                    error::connection_json(out, &why);
                    out.push(',');
                    out.push_str(&said_by(&caller));
                    out.push(']');
                });
            }
            Event::Listening(number, id) => {
                rows.text(Kind::Listening, number, 0, |out| {
                    out.push_str(&id.to_string());
                });
            }
            Event::Asked(number, topic, json) => {
                rows.text(Kind::Asked, number, topic as u32, |out| out.push_str(&json));
            }
            Event::Withdrawn(number) => rows.bare(Kind::Withdrawn, number),
            Event::Opened(json) => rows.text(Kind::Opened, 0, 0, |out| out.push_str(&json)),
            Event::Ready(number) => {
                let outcome = self.requests.look(number, &self.inbox);
                write_answer(rows, number, outcome);
            }
            Event::Answered(number) => write_answer(rows, number, self.requests.take(number)),
            Event::Progress(number, json) | Event::Partial(number, json) => {
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
            Event::Head(number, status, headers) => {
                rows.text(Kind::Head, number, status.into(), |out| {
                    out.push_str(&headers)
                });
            }
            Event::Piece(number, text, is_last) => {
                rows.text(Kind::Piece, number, is_last.into(), |out| {
                    out.push_str(&text)
                });
            }
            Event::Frame(of, message) => {
                let frame = String::from_utf8_lossy(message.bytes());
                rows.text(Kind::Frame, of, 0, |out| out.push_str(&frame));
                match &self.side {
                    Side::Wire(wire) => wire.was_read(message.bytes().len()),
                    Side::Relay(relay) => relay.was_read(message.bytes().len()),
                    _ => {}
                }
            }
            Event::Position(of, position) => {
                rows.text(Kind::Position, of, 0, |out| out.push_str(&position));
            }
            Event::Session(name) => rows.text(Kind::Session, 0, 0, |out| out.push_str(&name)),
            Event::Done(of, why) => rows.text(Kind::Done, of, 0, |out| out.push_str(&why)),
            Event::Bad(why) => rows.text(Kind::Bad, 0, 0, |out| out.push_str(&why)),
            Event::Room(number) => rows.bare(Kind::Room, number),
            Event::Ended(json) => rows.text(Kind::Ended, 0, 0, |out| out.push_str(&json)),
        }
    }
}

/// A client's description of itself from when it connected, as JSON; `null` without one.
fn said_by(caller: &Caller) -> String {
    caller.introduction().unwrap_or_else(|| "null".to_owned())
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
                self.write_event(rows, event, &mut given_up);
            });
            if let (Err(panic), Some(number)) = (written, number) {
                self.requests.forget(number);
                rows.text(Kind::Failure, number, 0, |out| {
                    error::panic_json(out, &panic);
                });
            }
        }
        if let Side::Server(live) = &self.side {
            for arrived in calls.drain(..) {
                let number = self.calls.vacant();
                let written = rows.whole(|rows| {
                    panics::point("call");
                    rows.call(number, &arrived.call, live);
                });
                match written {
                    Ok(()) => self.calls.insert(Underway::new(arrived, &self.inbox)),
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
    pub fn submit(&mut self, text: String, table: &[f64], at_once: bool) {
        let Side::Server(live) = &self.side else {
            return;
        };
        let said = submit::submit(live, &mut self.calls, &text, table);
        panics::point("submit");
        match self.inbox.runtime() {
            // Dropping replies submits them.
            None => drop(said),
            Some(runtime) => self.outbox.send(said, runtime),
        }
        if at_once {
            self.outbox.flush();
        }
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

    /// Ends a server gracefully, or a client with its child.
    #[napi(catch_unwind)]
    pub fn stop(&self) {
        quietly(|| {
            panics::point("stop");
            (self.stop)();
        });
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // JavaScript's environment is torn down, or nothing refers to the connection any more.
        self.stop();
    }
}

/// Converts milliseconds from JavaScript.
pub fn duration(ms: f64) -> Result<Duration> {
    let misuse = |_| error::error("ERR_MCP_MISUSE", format!("{ms} ms is no duration"));
    Duration::try_from_secs_f64(ms / 1000.0).map_err(misuse)
}

/// Starts a thread of the engine. It must report its end by dropping something, so that a panic reports it,
/// too.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    let guarded = || quietly(run);
    builder
        .spawn(guarded)
        .map(drop)
        .map_err(|why| error::io(&why))
}
