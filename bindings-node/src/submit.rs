//! One submit: what handlers returned in one tick, as one string and a table of numbers.
//!
//! A row is [`ROW`] numbers: kind, call, length of its text in UTF-16 units, and two more that depend on the
//! kind. The texts follow each other in the string, with one unit between them. The kinds are
//! [`Outbound`].

use mcpbolt::connection::{Progress, Replies};
use mcpbolt::mcp::LogLevel;
use mcpbolt::server::SharedRegistry;

use crate::answers::Answer;
use crate::caller::Caller;
use crate::calls::{Calls, Underway};
use crate::kinds::Outbound;
use crate::panics::{self, caught, quietly};
use crate::served::Templates;
use crate::utf16;

const ROW: usize = 5;

/// The replies of consecutive rows, grouped by client.
#[derive(Default)]
struct Turn {
    said: Vec<Replies>,
    last: Option<(u64, Replies)>,
}

impl Turn {
    fn to(&mut self, caller: &Caller) -> &mut Replies {
        let before = self.last.take_if(|(number, _)| *number != caller.number);
        self.said.extend(before.map(|(_, replies)| replies));
        let begin = || (caller.number, caller.handle.replies());
        &mut self.last.get_or_insert_with(begin).1
    }

    fn finish(mut self) -> Vec<Replies> {
        self.said.extend(self.last.map(|(_, replies)| replies));
        self.said
    }
}

/// Processes the rows of one tick, whose text has that many [`units`]; returns the replies to pass to the engine.
pub fn submit(
    live: &SharedRegistry<Templates>,
    calls: &mut Calls,
    text: &str,
    units: usize,
    table: &[f64],
) -> Vec<Replies> {
    let mut pieces = Pieces {
        rest: text,
        ascii: units == text.len(),
    };
    let mut turn = Turn::default();
    for row in table.chunks_exact(ROW) {
        let [kind, number, units, a, b] = *row else {
            break;
        };
        let piece = pieces.next(units as usize);
        let Some(kind) = Outbound::at(kind as u32) else {
            continue;
        };
        let number = number as u32;
        if !kind.is_answer() {
            if let Some(call) = calls.get(number) {
                // On a panic the call continues without this row.
                quietly(|| news(turn.to(call.caller()), call, kind, piece, a, b));
            }
        } else if let Some(call) = calls.remove(number) {
            let answered = caught(|| {
                panics::point("answer");
                let answer = Answer::read(kind, piece, (a, b), live);
                match call.task() {
                    None => answer.send(turn.to(call.caller()), call.reply()),
                    Some(task) => answer.end(task),
                }
            });
            if let Err(panic) = answered {
                panic.answer(turn.to(call.caller()), call.reply());
            }
        }
    }
    turn.finish()
}

fn news(replies: &mut Replies, call: &Underway, kind: Outbound, piece: &str, a: f64, b: f64) {
    match kind {
        Outbound::Progress => call.progress(
            replies,
            Progress {
                progress: a,
                total: (!b.is_nan()).then_some(b),
                message: (!piece.is_empty()).then_some(piece),
            },
        ),
        Outbound::TaskMessage => {
            if let Some(task) = call.task() {
                task.say(piece);
            }
        }
        Outbound::Partial => replies.partial(call.reply(), piece),
        Outbound::Notice => {
            let (method, params) = piece.split_at(utf16::boundary(piece, a as usize));
            replies.notify(call.reply(), method, (!params.is_empty()).then_some(params));
        }
        _ => {
            let level = LogLevel::ALL.get(a as usize).copied();
            let (logger, data) = piece.split_at(utf16::boundary(piece, b as usize));
            let logger = (!logger.is_empty()).then_some(logger);
            replies.log(call.reply(), level.unwrap_or(LogLevel::Info), logger, data);
        }
    }
}

/// How many units the text of a table's rows has.
pub fn units(table: &[f64]) -> usize {
    let rows = table.chunks_exact(ROW);
    let between = rows.len().saturating_sub(1);
    let texts = rows.map(|row| row.get(2).map_or(0, |units| *units as usize));
    between + texts.sum::<usize>()
}

/// The texts of a tick, one after the other.
struct Pieces<'a> {
    rest: &'a str,
    /// Whether every unit is one byte.
    ascii: bool,
}

impl<'a> Pieces<'a> {
    fn next(&mut self, units: usize) -> &'a str {
        let end = match self.ascii {
            true => units,
            false => utf16::boundary(self.rest, units),
        };
        let (piece, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest.get(1..).unwrap_or_default();
        piece
    }
}
