//! Events of a connection that a program drives itself, as rows of a table.

use mcpbolt::connection::Stray;
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::message::Message;

use super::rows::{self, WIDTH};
use crate::error::Failure;
use crate::json;

/// Integers before those of the message: the kind, and two that depend on it.
const HEAD: usize = 3;

/// Integers per event.
pub const ROW: usize = HEAD + WIDTH;

/// The kind of a row, in the order of `Happened` in `face/engine/connection.ts`.
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

/// A batch of rows being written, and the bytes that they refer to.
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
                let text = json::text(&Failure::of_request(why));
                self.text(Kind::Failed, halves(number), text.as_bytes());
            }
        }
    }

    pub fn closed(&mut self, why: &ConnectionError) {
        let text = json::text(&Failure::of_connection(why));
        self.text(Kind::Closed, [0, 0], text.as_bytes());
    }
}

/// Splits a number of 53 bits into two integers, the low half first.
pub fn halves(number: u64) -> [i32; 2] {
    [number as i32, (number >> 32) as i32]
}

/// The number of a kind of stray frame in `face/engine/connection.ts`.
pub fn stray(what: Stray) -> i32 {
    match what {
        Stray::Answer => 0,
        Stray::BadFrame => 1,
        Stray::Oversize => 2,
        Stray::Cancel => 3,
        _ => 4,
    }
}
