//! What happens on a connection that a program drives itself, as rows of a table.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Wake, Waker};

use mcpbolt::connection::{
    Answer, Batch, Call, CallKey, Disposition, Host, Incoming, Progress as News, Stray,
};
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::mcp::Revision;
use mcpbolt::message::{Message, MessageRef};
use serde_json::json;

use super::rows::{self, WIDTH};
use crate::error;

/// One of them, before JavaScript sees it.
pub enum Event {
    Opened(Revision),
    Request(Box<Call>),
    Cancelled(CallKey, Option<String>),
    Notification(Message),
    Progress(u64, String),
    Answered(u64, Result<Message, RequestError>),
    Stray(Stray, Vec<u8>),
    Closed(ConnectionError),
}

/// Gathers them in their order.
#[derive(Default)]
pub struct Gathered {
    pub events: VecDeque<Event>,
    /// What is told while a request of this side's is under way.
    pub told: Arc<Mutex<Vec<Told>>>,
}

pub enum Told {
    /// The request of that number may be over.
    Over(u64),
    /// How far it is, as JSON.
    Progress(u64, String),
}

struct Over(u64, Arc<Mutex<Vec<Told>>>);

impl Wake for Over {
    fn wake(self: Arc<Self>) {
        lock(&self.1).push(Told::Over(self.0));
    }
}

impl Gathered {
    /// Notes that a request of this side's is over.
    pub fn waker(&self, number: u64) -> Waker {
        Arc::new(Over(number, self.told.clone())).into()
    }

    /// Notes the progress of a request, whose number is known once it is made.
    pub fn report(
        &self,
        number: Arc<OnceLock<u64>>,
    ) -> impl Fn(News<'_>) + Send + Sync + 'static + use<> {
        let told = self.told.clone();
        move |news| {
            let number = number.get().copied().unwrap_or_default();
            let mut json = json!({ "progress": news.progress });
            if let Some(total) = news.total {
                json["total"] = total.into();
            }
            if let Some(message) = news.message {
                json["message"] = message.into();
            }
            lock(&told).push(Told::Progress(number, json.to_string()));
        }
    }
}

impl Host for Gathered {
    fn request(&mut self, _: Incoming<'_>, _: Answer<'_>) -> Disposition {
        Disposition::Deferred(0)
    }

    fn dispatch(&mut self, batch: Batch) {
        let calls = batch.calls().map(|call| Event::Request(Box::new(call)));
        self.events.extend(calls);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        let reason = reason.map(str::to_owned);
        self.events.push_back(Event::Cancelled(key, reason));
    }

    fn notification(&mut self, message: MessageRef<'_>) {
        self.events.push_back(Event::Notification(message.detach()));
    }

    fn opened(&mut self, revision: Revision) {
        self.events.push_back(Event::Opened(revision));
    }

    fn closed(&mut self, reason: &ConnectionError) {
        self.events.push_back(Event::Closed(reason.clone()));
    }

    fn stray(&mut self, what: Stray, frame: &[u8]) {
        self.events.push_back(Event::Stray(what, frame.to_owned()));
    }
}

/// Integers before those of the message: what happened, and two that depend on it.
const HEAD: usize = 3;

/// Integers of an event.
pub const ROW: usize = HEAD + WIDTH;

/// What a row is about, as `Happened` in the face counts it.
#[derive(Clone, Copy)]
#[repr(i32)]
pub enum Kind {
    Opened,
    Request,
    Cancelled,
    Notification,
    Progress,
    Answered,
    Failed,
    Stray,
    Closed,
}

/// A batch being written: rows, and the bytes that they are about.
pub struct Rows<'a> {
    table: &'a mut [i32],
    pub used: usize,
    pub bytes: Vec<u8>,
}

impl<'a> Rows<'a> {
    pub fn new(table: &'a mut [i32]) -> Self {
        Self {
            table,
            used: 0,
            bytes: Vec::new(),
        }
    }

    /// Whether another row fits.
    pub fn has_room(&self) -> bool {
        (self.used + 1) * ROW <= self.table.len()
    }

    fn put(&mut self, kind: Kind, [a, b]: [i32; 2], message: [i32; WIDTH]) {
        let at = self.used * ROW;
        if let Some(place) = self.table.get_mut(at..at + ROW) {
            place[..HEAD].copy_from_slice(&[kind as i32, a, b]);
            place[HEAD..].copy_from_slice(&message);
            self.used += 1;
        }
    }

    pub fn message(&mut self, kind: Kind, numbers: [i32; 2], message: &Message) {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(message.bytes());
        let row = rows::decoded(message.bytes(), base, message.as_ref().envelope());
        self.put(kind, numbers, row);
    }

    pub fn text(&mut self, kind: Kind, numbers: [i32; 2], text: &[u8]) {
        let mut row = [0; WIDTH];
        row[1] = self.bytes.len() as i32;
        self.bytes.extend_from_slice(text);
        row[2] = self.bytes.len() as i32;
        self.put(kind, numbers, row);
    }

    pub fn answered(&mut self, number: u64, outcome: &Result<Message, RequestError>) {
        match outcome {
            Ok(message) => self.message(Kind::Answered, halves(number), message),
            Err(why) => {
                let mut text = String::new();
                error::request_json(&mut text, why);
                self.text(Kind::Failed, halves(number), text.as_bytes());
            }
        }
    }

    pub fn closed(&mut self, why: &ConnectionError) {
        let mut text = String::new();
        error::connection_json(&mut text, why);
        self.text(Kind::Closed, [0, 0], text.as_bytes());
    }
}

/// A number of 53 bits as two integers, the low one first.
pub fn halves(number: u64) -> [i32; 2] {
    [number as i32, (number >> 32) as i32]
}

/// What came and concerned nobody, by the number that the face knows it by.
pub fn stray(what: Stray) -> i32 {
    match what {
        Stray::Answer => 0,
        Stray::BadFrame => 1,
        Stray::Oversize => 2,
        Stray::Cancel => 3,
        _ => 4,
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A list of news is whole whenever somebody else may take it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
