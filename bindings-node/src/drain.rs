//! One drain: a batch of events and calls as one string and a table of integers.
//!
//! A row is [`ROW`] integers: kind, number, target, and the end of its text in the string, in UTF-16 units;
//! the text begins where the previous row's text ends. The fifth is 1 for a call whose row leaves texts
//! [aside](crate::aside). An [`Inbound::Invoke`] row has the position there at which its text is split, and then
//! the end of its arguments. The row of a call whose span begins now has the end of the span's description there. The table begins with
//! [`HEAD`] integers: the number of rows, whether more waits, and where the arguments of all [`Inbound::Invoke`] calls, or the
//! descriptions of all spans, begin. These are one JSON array at the end of the string (-1 if there are none), because parsing them at once
//! costs much less than one by one.
//!
//! The table is JavaScript's memory, written in place:
//!
//! 1. It belongs to the TypeScript side, which creates it over a plain buffer, never over a shared one, and
//!    holds it while a native function runs. JavaScript's thread runs nothing else meanwhile, so nothing
//!    reads, moves or frees the table while it is written.

use mcpbolt::connection::{Call, Operation};
use mcpbolt::mcp::{Era, Method};
use mcpbolt::message::{Field, MessageRef};
use mcpbolt::server::SharedRegistry;
use mcpbolt::telemetry::HostTelemetry;
use napi::bindgen_prelude::{Float64ArraySlice, Int32ArraySlice};
use napi::{Env, JsString};

use crate::aside::{self, Aside};
use crate::error::{Result, internal};
use crate::inbox::Row;
use crate::json::quote;
use crate::kinds::Inbound;
use crate::operation::{self, Delegated, LISTS};
use crate::panics::{Panicked, caught};
use crate::served::Templates;
use crate::utf16;

/// Integers before the rows.
const HEAD: usize = 3;
/// Integers in a row.
const ROW: usize = 6;

/// The table as the integers it holds.
#[allow(unsafe_code)]
pub fn integers<'a>(table: &'a mut Int32ArraySlice<'_>) -> &'a mut [i32] {
    // SAFETY: 1
    unsafe { table.as_mut() }
}

/// The table as the numbers it holds.
#[allow(unsafe_code)]
pub fn numbers<'a>(table: &'a mut Float64ArraySlice<'_>) -> &'a mut [f64] {
    // SAFETY: 1
    unsafe { table.as_mut() }
}

/// A growing text, and its length in UTF-16 units. Reused from batch to batch.
#[derive(Default)]
pub struct Text {
    text: String,
    /// How many bytes have been counted, and how many units they are.
    counted: usize,
    units: i32,
}

/// The texts of a batch.
#[derive(Default)]
pub struct Texts {
    rows: Text,
    /// The arguments of calls or the descriptions of their spans, each preceded by its `[` or `,`.
    arguments: Text,
}

/// Capacity in bytes above which the memory of a text is freed.
const KEEP_BYTES: usize = 1 << 20;

impl Text {
    fn begin(&mut self) {
        if self.text.capacity() > KEEP_BYTES {
            self.text = String::new();
        }
        self.text.clear();
        (self.counted, self.units) = (0, 0);
    }

    fn state(&self) -> (usize, usize, i32) {
        (self.text.len(), self.counted, self.units)
    }

    fn back_to(&mut self, (len, counted, units): (usize, usize, i32)) {
        self.text.truncate(len);
        (self.counted, self.units) = (counted, units);
    }

    /// Counts what was appended since the last count; returns the end of the text in units.
    fn measure(&mut self) -> i32 {
        let piece = self.text.get(self.counted..).unwrap_or_default();
        self.units += utf16::len(piece) as i32;
        self.counted = self.text.len();
        self.units
    }
}

/// A batch being written.
pub struct Rows<'a> {
    table: &'a mut [i32],
    used: usize,
    text: &'a mut Text,
    arguments: &'a mut Text,
}

impl<'a> Rows<'a> {
    /// `table` begins with [`HEAD`] integers for [`finish`](Self::finish).
    pub fn new(table: &'a mut [i32], texts: &'a mut Texts) -> Self {
        let Texts { rows, arguments } = texts;
        rows.begin();
        arguments.begin();
        Self {
            table,
            used: 0,
            text: rows,
            arguments,
        }
    }

    /// Runs `write`, and undoes what it wrote if it panics.
    ///
    /// # Errors
    /// `write` panicked.
    pub fn whole<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> T,
    ) -> std::result::Result<T, Panicked> {
        let before = (self.used, self.text.state(), self.arguments.state());
        let written = caught(|| write(self));
        if written.is_err() {
            self.used = before.0;
            self.text.back_to(before.1);
            self.arguments.back_to(before.2);
        }
        written
    }

    /// How many rows fit.
    pub fn capacity(table: &[i32]) -> usize {
        table.len().saturating_sub(HEAD) / ROW
    }

    /// A row as it is.
    pub fn row(&mut self, row: &Row) {
        let Row {
            kind,
            number,
            target,
            text,
        } = row;
        self.text(*kind, *number, *target, |out| out.push_str(text));
    }

    /// A row with the text that `write` appends.
    pub fn text(
        &mut self,
        kind: Inbound,
        number: u32,
        target: u32,
        write: impl FnOnce(&mut String),
    ) {
        write(&mut self.text.text);
        self.put(kind, number, target, [0; 2]);
    }

    /// A call of a delegate's tool, by number.
    fn invoke(&mut self, kind: Inbound, number: u32, tool: u32, message: &MessageRef<'_>) {
        let piece = |field| message.raw(field).unwrap_or_default();
        self.text.text.push_str(piece(Field::Id));
        let cut = self.text.measure();
        self.text.text.push_str(piece(Field::Meta));
        let arguments = message.raw(Field::Arguments);
        let end = self.parsed(arguments.unwrap_or("null"));
        self.put(kind, number, tool, [cut, end]);
    }

    /// Adds to what JavaScript parses at once; returns where it ends.
    fn parsed(&mut self, json: &str) -> i32 {
        let all = &mut self.arguments.text;
        all.push(match all.is_empty() {
            true => '[',
            false => ',',
        });
        all.push_str(json);
        self.arguments.measure()
    }

    fn put(&mut self, kind: Inbound, number: u32, target: u32, [cut, arguments]: [i32; 2]) {
        let at = HEAD + self.used * ROW;
        let end = self.text.measure();
        if let Some(place) = self.table.get_mut(at..at + ROW) {
            let [number, target] = [number, target].map(|number| number as i32);
            place.copy_from_slice(&[kind as i32, number, target, end, cut, arguments]);
            self.used += 1;
        }
    }

    /// A call and what its handler needs of it, and the texts that its row leaves aside. The target is the
    /// operation's own number.
    pub fn call(
        &mut self,
        number: u32,
        call: &Call,
        live: &SharedRegistry<Templates>,
    ) -> Vec<Aside> {
        let before = self.used;
        let aside = self.put_call(number, call, live);
        // A delegate has no telemetry.
        let is_own = self.used > before && Delegated::of(call.operation).is_none();
        if let Some(scope) = call.scope.as_ref().filter(|_| is_own) {
            scope.enter(&mut || {
                let end = HostTelemetry::begun().map_or(0, |span| self.parsed(&span));
                let place = HEAD + before * ROW + ROW - 1;
                if let Some(place) = self.table.get_mut(place) {
                    *place = end;
                }
            });
        }
        aside
    }

    fn put_call(
        &mut self,
        number: u32,
        call: &Call,
        live: &SharedRegistry<Templates>,
    ) -> Vec<Aside> {
        let kind = match call.reply.wants_progress() {
            true => Inbound::CallWithProgress,
            false => Inbound::Call,
        };
        let message = call.message.as_ref();
        match Delegated::of(call.operation) {
            None => {}
            Some(Delegated::Whole) => {
                let frame = String::from_utf8_lossy(message.bytes());
                self.text(Inbound::Request, number, 0, |out| out.push_str(&frame));
                return Vec::new();
            }
            Some(Delegated::Tool(tool)) => {
                let kind = match call.reply.revision().era() {
                    Era::Handshake => Inbound::Invoke,
                    Era::Stateless => Inbound::InvokeAlone,
                };
                self.invoke(kind, number, tool, &message);
                return Vec::new();
            }
        }
        let Some(target) = operation::pack(call.operation) else {
            return Vec::new();
        };
        match call.operation {
            Operation::CallTool(_) | Operation::GetPrompt(_) => {
                let arguments = message.arguments().unwrap_or_default();
                let aside = aside::find(arguments);
                aside::write_rest(&mut self.text.text, arguments, &aside);
                self.put(kind, number, target, [i32::from(!aside.is_empty()), 0]);
                return aside;
            }
            Operation::Complete | Operation::Extension(_) => {
                self.text(kind, number, target, |out| {
                    out.push_str(message.params().unwrap_or("{}"));
                })
            }
            Operation::ReadResource(_) => self.text(kind, number, target, |out| {
                quote(out, &message.uri().unwrap_or_default());
            }),
            Operation::ReadTemplate(index) => self.text(kind, number, target, |out| {
                let uri = message.uri().unwrap_or_default();
                // `None` if it was removed meanwhile: then no handler runs the call, either.
                let templates = live.snapshot().handlers;
                let template = templates.get(&index);
                let variables = template.and_then(|template| template.match_uri(&uri));
                out.push('[');
                quote(out, &uri);
                out.push_str(",{");
                for (i, (name, value)) in variables.unwrap_or_default().iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    quote(out, name);
                    out.push(':');
                    quote(out, value);
                }
                out.push_str("}]");
            }),
            LISTS => self.text(kind, number, target, |out| {
                let method = message.method().unwrap_or_default();
                let registry = live.snapshot().registry;
                let page = Method::parse(&method).and_then(|method| {
                    let cursor = message.raw(Field::Cursor);
                    registry.list_page(
                        method,
                        call.reply.revision(),
                        cursor,
                        call.reply.principal(),
                    )
                });
                out.push('[');
                quote(out, &method);
                if let Some(members) = page {
                    out.push_str(",{");
                    out.push_str(&members);
                    out.push('}');
                }
                out.push(']');
            }),
            _ => {}
        }
        Vec::new()
    }

    /// Returns the string, and writes the head of the table.
    pub fn finish(self, env: &Env, more: bool) -> Result<JsString<'_>> {
        let (text, mut begin) = (self.text, -1);
        let mut units = text.units;
        if !self.arguments.text.is_empty() {
            begin = units;
            text.text.push_str(&self.arguments.text);
            text.text.push(']');
            units += self.arguments.units + 1;
        }
        if let [rows, waits, arguments, ..] = self.table {
            *rows = self.used as i32;
            *waits = i32::from(more);
            *arguments = begin;
        }
        utf16::string(env, &text.text, units as usize).map_err(internal)
    }
}
