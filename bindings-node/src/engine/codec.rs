//! Decodes messages from bytes.

use mcpbolt::buffer::Input;
use mcpbolt::frame::{Deframer, Event, Framing};
use mcpbolt::limits::Limits;
use mcpbolt::message::{self, Envelope, Frame, Message, decode_unpadded};
use napi::Env;
use napi::bindgen_prelude::{BufferSlice, Int32ArraySlice};
use napi_derive::napi;
use serde_json::json;

use super::rows::{self, WIDTH};
use crate::drain::integers;
use crate::error::{Result, internal, unknown};

/// Decodes one message into the row with that index.
#[napi(catch_unwind)]
pub fn decode_message(
    bytes: &[u8],
    max_depth: Option<u32>,
    mut table: Int32ArraySlice<'_>,
    index: u32,
) {
    let row = row_of_bytes(bytes, 0, depth(max_depth));
    put(integers(&mut table), index as usize, row);
}

/// Decodes the messages of a batch; returns how many there are. Fills as many rows as the table has.
#[napi(catch_unwind)]
pub fn decode_batch(bytes: &[u8], max_depth: Option<u32>, mut table: Int32ArraySlice<'_>) -> u32 {
    let (table, max_depth) = (integers(&mut table), depth(max_depth));
    let Ok(whole) = Message::parse(bytes, max_depth) else {
        return 0;
    };
    let Some(frame) = whole.frame() else { return 0 };
    let mut count = 0;
    for element in message::batch(frame) {
        let base = element.padded().as_ptr() as usize - frame.padded().as_ptr() as usize;
        put(table, count, row_of(element, base, max_depth));
        count += 1;
    }
    count as u32
}

fn row_of(frame: Frame<'_>, base: usize, max_depth: usize) -> [i32; WIDTH] {
    let mut envelope = Envelope::new();
    match message::decode(frame, max_depth, &mut envelope) {
        Ok(()) => rows::decoded(frame.bytes(), base, &envelope),
        Err(why) => rows::broken(frame.bytes(), base, &envelope, why),
    }
}

/// Like [`row_of`], for bytes without padding.
fn row_of_bytes(bytes: &[u8], base: usize, max_depth: usize) -> [i32; WIDTH] {
    let mut envelope = Envelope::new();
    match decode_unpadded(bytes, max_depth, &mut envelope) {
        Ok(()) => rows::decoded(bytes, base, &envelope),
        Err(why) => rows::broken(bytes, base, &envelope, why),
    }
}

fn put(table: &mut [i32], index: usize, row: [i32; WIDTH]) {
    if let Some(place) = table.get_mut(index * WIDTH..(index + 1) * WIDTH) {
        place.copy_from_slice(&row);
    }
}

/// The meaning of the numbers in rows, as JSON: the names of `methods`, and the code and the sentence of each
/// of `faults`.
#[napi(catch_unwind)]
pub fn row_tables() -> String {
    json!({ "methods": rows::methods(), "faults": rows::sentences() }).to_string()
}

fn depth(max_depth: Option<u32>) -> usize {
    max_depth.map_or(Limits::STDIO.max_depth, |depth| depth as usize)
}

/// A JavaScript buffer with these bytes.
pub fn buffer<'e>(env: &'e Env, bytes: &[u8]) -> Result<BufferSlice<'e>> {
    BufferSlice::copy_from(env, bytes).map_err(internal)
}

/// Decodes messages from a byte stream, however the stream is split.
#[napi]
pub struct Decoder {
    input: Input,
    deframer: Deframer,
    max_depth: usize,
    is_line: bool,
}

#[napi]
impl Decoder {
    #[napi(constructor, catch_unwind)]
    pub fn new(framing: String, max_bytes: Option<f64>, max_depth: Option<u32>) -> Result<Self> {
        let own = Limits::STDIO.max_message_bytes;
        let max_bytes = max_bytes.map_or(own, |bytes| bytes as usize);
        let named = Framing::parse(&framing);
        let framing = named.ok_or_else(|| unknown("framing", &framing))?;
        Ok(Self {
            input: Input::new(),
            deframer: Deframer::new(framing, max_bytes),
            max_depth: depth(max_depth),
            is_line: framing != Framing::Length,
        })
    }

    /// Copies received bytes.
    #[napi(catch_unwind)]
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
    }

    /// Copies the bytes that belong to a message that has begun; returns how many. The rest can be decoded in
    /// place.
    #[napi(catch_unwind)]
    pub fn feed_begun(&mut self, bytes: &[u8]) -> u32 {
        let begun = self.input.filled();
        let taken = match self.deframer.framing(begun) {
            _ if begun.is_empty() => 0,
            Framing::Line => memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1),
            _ => bytes.len(),
        };
        self.input.extend(bytes.get(..taken).unwrap_or(bytes));
        taken as u32
    }

    /// Marks the end of the stream: a last line without a line end is a line, too.
    #[napi(catch_unwind)]
    pub fn feed_end(&mut self) {
        if self.is_line && !self.input.filled().iter().all(u8::is_ascii_whitespace) {
            self.input.extend(b"\n");
        }
    }

    /// Returns the bytes of the complete messages, and fills the table: the number of rows, then the rows.
    /// When the table is full there may be more messages.
    #[napi(catch_unwind)]
    pub fn drain<'e>(
        &mut self,
        env: &'e Env,
        mut table: Int32ArraySlice<'_>,
    ) -> Result<Option<BufferSlice<'e>>> {
        let (padded, len) = (self.input.padded(), self.input.filled().len());
        let table = integers(&mut table);
        let used = fill(&mut self.deframer, padded, len, self.max_depth, 0, table);
        let done = self.deframer.drain();
        let block = match used {
            0 => None,
            _ => Some(buffer(env, padded.get(..done).unwrap_or_default())?),
        };
        self.input.consume(done);
        Ok(block)
    }

    /// Decodes bytes in place, from the offset `from` on, when no copied bytes are waiting. Returns the
    /// offset of the first byte that is not yet decoded.
    #[napi(catch_unwind)]
    pub fn drain_from(&mut self, bytes: &[u8], from: u32, mut table: Int32ArraySlice<'_>) -> u32 {
        let rest = bytes.get(from as usize..).unwrap_or_default();
        let table = integers(&mut table);
        let base = from as usize;
        fill(
            &mut self.deframer,
            rest,
            rest.len(),
            self.max_depth,
            base,
            table,
        );
        from + self.deframer.drain() as u32
    }
}

/// Decodes the messages of the first `len` bytes into a table; returns how many there are. `base` is
/// JavaScript's offset of the first byte. Bytes after `len` are padding, if any.
fn fill(
    deframer: &mut Deframer,
    padded: &[u8],
    len: usize,
    max_depth: usize,
    base: usize,
    table: &mut [i32],
) -> usize {
    let Some((count, table)) = table.split_first_mut() else {
        return 0;
    };
    let filled = padded.get(..len).unwrap_or_default();
    let room = table.len() / WIDTH;
    let mut used = 0;
    while used < room
        && let Some(event) = deframer.next(filled)
    {
        let row = match event {
            Event::Frame(range) => {
                let place = base + range.start;
                let behind = padded.get(range.start..).unwrap_or_default();
                match Frame::new(behind, range.len()) {
                    Some(frame) => row_of(frame, place, max_depth),
                    None => row_of_bytes(filled.get(range).unwrap_or_default(), place, max_depth),
                }
            }
            Event::Oversize { prefix } => {
                let head = filled.get(prefix.clone()).unwrap_or_default();
                let mut envelope = Envelope::new();
                // Fails, because the message is cut off; the parts before the cut are of use.
                let _ = decode_unpadded(head, max_depth, &mut envelope);
                rows::oversize(head, base + prefix.start, &envelope)
            }
        };
        put(table, used, row);
        used += 1;
    }
    *count = used as i32;
    used
}
