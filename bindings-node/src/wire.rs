//! Carries messages unchanged, without an engine connection on top, for programs that implement the protocol
//! themselves.
//!
//! ```text
//!   stdin, a child ─▶ io::Wire (its thread) ─▶ inbox ─▶ drain: a row for each message
//!   stdout, the child ◀─ io::Wire ◀──────── bytes ◀────────────── say
//! ```

use std::io;
use std::sync::Arc;

use mcpbolt::io::{Wire, WireEvent, WireHandle};
use mcpbolt::limits::Limits;
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::child::{exit_json, start};
use crate::error::Result;
use crate::inbox::{EndReport, Event, Inbox};
use crate::kinds::Inbound;
use crate::link::{Link, Side};
use crate::serve::{report_json, take};
use crate::threads::spawn;

/// The wire of `handle`, which passes what it receives to JavaScript.
fn lines(handle: &WireHandle, inbox: &Arc<Inbox>) -> Wire<impl Fn(Vec<WireEvent>) + use<>> {
    let inbox = inbox.clone();
    handle.wire(move |heard| {
        for heard in heard {
            inbox.push(match heard {
                WireEvent::Message(message) => Event::Frame(0, message),
                WireEvent::Bad(why) => Event::text(Inbound::Bad, why),
                WireEvent::Room => Event::text(Inbound::Room, String::new()),
            });
        }
    })
}

/// Carries messages on this process's stdin and stdout, on a thread of the engine. Without a grace period, the program
/// decides how long requests may take.
#[napi(catch_unwind)]
pub fn wire_stdio(wake: Function<'_, (), ()>, grace_ms: Option<f64>) -> Result<Link> {
    let inbox = Arc::new(Inbox::new(&wake)?);
    let (stdio, finish, over) = take(grace_ms, false, &inbox)?;
    let wire = WireHandle::new(Limits::STDIO, stdio.wake());
    let (stop, side) = (stdio.stop(), Side::Wire(wire.clone()));
    let link = Link::new(inbox.clone(), side, move || stop.stop()).finished_by(finish);
    spawn("mcpbolt-wire", move || {
        let _over = over;
        let mut report = EndReport::new(&inbox);
        report.set(report_json(&Err(io::Error::other("the engine failed"))));
        let outcome = stdio.run(&mut lines(&wire, &inbox));
        report.set(report_json(&outcome));
    })?;
    Ok(link)
}

/// Starts a program, and carries messages on its stdin and stdout.
#[napi(catch_unwind)]
pub fn wire_child(child: String, wake: Function<'_, (), ()>) -> Result<Link> {
    let inbox = Arc::new(Inbox::new(&wake)?);
    let child = start(&child, &inbox)?;
    let wire = WireHandle::new(Limits::STDIO, child.wake());
    let (stop, pid) = (child.stop(), child.id());
    let side = Side::Wire(wire.clone());
    let link = Link::new(inbox.clone(), side, move || stop.stop()).of_process(pid);
    spawn("mcpbolt-wire", move || {
        let mut report = EndReport::new(&inbox);
        if let Ok(exit) = child.run(&mut lines(&wire, &inbox)) {
            report.set(exit_json(&exit));
        }
    })?;
    Ok(link)
}

#[napi]
impl Link {
    /// Writes a message on a wire; `settles` if it answers a request. Returns whether there is room for more.
    #[napi(catch_unwind)]
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

    /// Notes that a request on a wire will not be answered.
    #[napi(catch_unwind)]
    pub fn settle(&self) {
        if let Side::Wire(wire) = &self.side {
            wire.settle();
        }
    }

    /// The id of the child process, if there is one.
    #[napi(catch_unwind)]
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }
}
