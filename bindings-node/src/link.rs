//! JavaScript's end of one connection.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use std::{pin::Pin, thread};

use mcpbolt::connection::{Direction, Handle, ReplyTo, RequestOptions, Response};
use mcpbolt::error::RequestError;
use mcpbolt::io::Stop;
use mcpbolt::message::Message;
use mcpbolt::server::Registry;
use napi::bindgen_prelude::Int32ArraySlice;
use napi::{Env, JsString};
use napi_derive::napi;

use crate::client::progress;
use crate::drain::{Kind, Rows, integers};
use crate::error::{self, Result};
use crate::inbox::{Event, Inbox};
use crate::slots::Slots;
use crate::submit;

/// A string kept between drains is given back when it has grown beyond this many bytes.
const KEEP_BYTES: usize = 1 << 20;

/// One connection, as the face holds it. All of it is used on one JavaScript thread.
#[napi]
pub struct Link {
    inbox: Arc<Inbox>,
    handle: Handle,
    stop: Option<Stop>,
    registry: Arc<Registry>,
    calls: Slots<ReplyTo>,
    requests: Slots<Request>,
    text: String,
}

/// A request of this side.
enum Request {
    /// Its number is taken, nothing is sent.
    Reserved,
    /// Its answer is to come, and will wake JavaScript.
    Waiting(Response, Waker),
    /// Its answer came while it was sent.
    Answered(Box<std::result::Result<Message, RequestError>>),
}

struct Ready {
    inbox: Arc<Inbox>,
    number: u32,
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.inbox.push(Event::Ready(self.number));
    }
}

impl Link {
    pub fn new(
        inbox: Arc<Inbox>,
        handle: Handle,
        stop: Option<Stop>,
        registry: Arc<Registry>,
    ) -> Self {
        Self {
            inbox,
            handle,
            stop,
            registry,
            calls: Slots::default(),
            requests: Slots::default(),
            text: String::new(),
        }
    }

    fn write_event(&mut self, rows: &mut Rows<'_>, event: Event) {
        match event {
            Event::Cancelled(key, reason) => {
                if let Some(number) = self.calls.position(|to| to.key() == key) {
                    self.calls.remove(number);
                    rows.text(Kind::Cancelled, number, 0, |out| {
                        out.push_str(reason.as_deref().unwrap_or_default());
                    });
                }
            }
            Event::Initialized => rows.bare(Kind::Initialized, 0),
            Event::Opened(json) => rows.text(Kind::Opened, 0, 0, |out| out.push_str(&json)),
            Event::Ready(number) => self.write_answer(rows, number),
            Event::Progress(number, json) => {
                rows.text(Kind::Progress, number, 0, |out| out.push_str(&json));
            }
            Event::Notification(json) => {
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

    fn write_answer(&mut self, rows: &mut Rows<'_>, number: u32) {
        if let Some(Request::Waiting(response, waker)) = self.requests.get_mut(number) {
            // A wake-up for an earlier request of that number finds nothing yet.
            let mut context = Context::from_waker(waker);
            match Pin::new(response).poll(&mut context) {
                Poll::Pending => return,
                Poll::Ready(outcome) => {
                    let answered = Request::Answered(Box::new(outcome));
                    self.requests.replace(number, answered);
                }
            }
        }
        let Some(Request::Answered(outcome)) = self.requests.remove(number) else {
            return;
        };
        match *outcome {
            Ok(message) => rows.text(Kind::Answer, number, 0, |out| {
                out.push_str(message.as_ref().result().unwrap_or("{}"));
            }),
            Err(why) => rows.text(Kind::Failure, number, 0, |out| {
                error::request_json(out, &why);
            }),
        }
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
        for call in &calls {
            if !call.cancel.is_cancelled() {
                let number = self.calls.insert(call.reply.clone());
                rows.call(number, call, &self.registry);
            }
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
        submit::submit(&self.handle, &mut self.calls, &text, table);
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
    ) -> Result<u32> {
        let number = self.requests.insert(Request::Reserved);
        let options = RequestOptions {
            timeout: timeout_ms.and_then(duration),
            max_timeout: max_timeout_ms.and_then(duration),
            progress: wants_progress.then(|| progress(self.inbox.clone(), number)),
            meta: None,
        };
        match self.handle.request(&method, params.as_deref(), options) {
            Err(why) => {
                self.requests.remove(number);
                Err(error::request(&why))
            }
            Ok(mut response) => {
                let inbox = self.inbox.clone();
                let waker = Waker::from(Arc::new(Ready { inbox, number }));
                let poll = Pin::new(&mut response).poll(&mut Context::from_waker(&waker));
                let request = match poll {
                    Poll::Pending => Request::Waiting(response, waker),
                    Poll::Ready(outcome) => {
                        waker.wake();
                        Request::Answered(Box::new(outcome))
                    }
                };
                self.requests.replace(number, request);
                Ok(number)
            }
        }
    }

    /// Gives a request up and tells the peer.
    #[napi]
    pub fn cancel(&mut self, number: u32, reason: Option<String>) {
        if let Some(Request::Waiting(response, _)) = self.requests.remove(number) {
            response.cancel(reason.as_deref());
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

/// Milliseconds as JavaScript counts them; none when there is no such duration.
pub fn duration(ms: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(ms / 1000.0).ok()
}

/// Starts a thread of the engine's.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(run).map(drop).map_err(|why| error::io(&why))
}
