//! Messages as they are, without a protocol of the engine's over them: for who has one of his own.
//!
//! ```text
//!   stdin, a child ─▶ io::Wire (its thread) ─▶ inbox ─▶ drain: a row for each message
//!   stdout, the child ◀─ io::Wire ◀──────── bytes ◀────────────── say
//! ```

use std::io;
use std::sync::Arc;

use mcpbolt::io::{Heard, Stdio, StdioOptions, Wire, WireHandle};
use mcpbolt::limits::Limits;
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::child::{ChildOptions, exit_json};
use crate::error::{self, Result};
use crate::inbox::{Event, Farewell, Inbox};
use crate::link::{Link, Side, spawn};
use crate::serve::{NOTICE, report_json};

/// The wire of `handle`, which tells JavaScript what it hears.
fn lines(handle: &WireHandle, inbox: &Arc<Inbox>) -> Wire<impl Fn(Vec<Heard>) + use<>> {
    let inbox = inbox.clone();
    handle.wire(move |heard| {
        for heard in heard {
            inbox.push(match heard {
                Heard::Message(message) => Event::Frame(0, message),
                Heard::Bad(why) => Event::Bad(why),
                Heard::Room => Event::Room,
            });
        }
    })
}

/// Carries this process's stdin and stdout, on a thread of the engine's.
#[napi]
pub fn wire_stdio(wake: Function<'_, (), ()>, signals: bool) -> Result<Link> {
    let inbox = Arc::new(Inbox::new(&wake)?);
    let options = StdioOptions {
        signals,
        ..StdioOptions::default()
    };
    let stdio = Stdio::take(options).map_err(|why| error::io(&why))?;
    let wire = WireHandle::new(Limits::STDIO, stdio.wake());
    let (stop, side) = (stdio.stop(), Side::Wire(wire.clone()));
    let link = Link::new(inbox.clone(), side, move || stop.stop());
    spawn("mcpbolt-wire", move || {
        let mut farewell = Farewell::new(&inbox);
        farewell.say(report_json(&Err(io::Error::other("the engine failed"))));
        let outcome = stdio.run(&mut lines(&wire, &inbox));
        let wedged = matches!(&outcome, Ok(report) if report.unanswered > 0);
        farewell.say(report_json(&outcome));
        drop(farewell);
        if wedged && !inbox.wait_drained(NOTICE) {
            signal_hook::low_level::exit(1);
        }
    })?;
    Ok(link)
}

/// Starts a program and carries its stdin and stdout.
#[napi]
pub fn wire_child(child: ChildOptions, wake: Function<'_, (), ()>) -> Result<Link> {
    let inbox = Arc::new(Inbox::new(&wake)?);
    let child = child.spawn(&inbox)?;
    let wire = WireHandle::new(Limits::STDIO, child.wake());
    let (stop, pid) = (child.stop(), child.id());
    let side = Side::Wire(wire.clone());
    let link = Link::new(inbox.clone(), side, move || stop.stop()).of_process(pid);
    spawn("mcpbolt-wire", move || {
        let mut farewell = Farewell::new(&inbox);
        if let Ok(exit) = child.run(&mut lines(&wire, &inbox)) {
            farewell.say(exit_json(&exit));
        }
    })?;
    Ok(link)
}

#[napi]
impl Link {
    /// Writes a message on a wire; `settles` when it answers a request. Whether there is room for more.
    #[napi]
    pub fn say(&self, message: String, settles: bool) -> bool {
        let Side::Wire(wire) = &self.side else {
            return true;
        };
        let has_room = wire.send(message.as_bytes());
        if settles {
            wire.settle();
        }
        has_room
    }

    /// A request on a wire will not be answered.
    #[napi]
    pub fn settle(&self) {
        if let Side::Wire(wire) = &self.side {
            wire.settle();
        }
    }

    /// The process that this leads to, if it leads to one.
    #[napi]
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }
}
