//! Connections that clients share are closed when nobody has needed them for some time.

use std::time::Duration;

use mcpbolt::chain::{Front, Isolation};
use mcpbolt::mcp::{Revision, meta};
use serde_json::json;

use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;
const IDLE: Duration = Duration::from_secs(60);

fn rig(revision: Revision) -> Rig {
    Rig::over(revision, 1, |external| {
        let hour = Duration::from_secs(3600);
        let external = external.isolation(Isolation::Shared).timeouts(hour, hour);
        Front::new(external.idle_time(IDLE))
    })
}

/// A client without a session calls a tool, which the server answers on that connection after that time.
#[track_caller]
fn call(rig: &mut Rig, far: usize, time: Duration) {
    let params = json!({"name": "x"});
    let near = rig.post(&stateless(1, "tools/call", params, &json!({})));
    let heard = rig.far_hears(far);
    for _ in 0..time.as_secs() {
        rig.pass(Duration::from_secs(1));
    }
    rig.answer(far, &heard, &json!({"content": []}));
    assert!(rig.hear(near)["error"].is_null());
}

fn pass(rig: &mut Rig, time: Duration) {
    for _ in 0..time.as_secs() {
        rig.pass(Duration::from_secs(1));
    }
}

#[test]
fn a_connection_is_closed_after_a_time_without_use_and_opened_again() {
    for revision in [OLD, NEW] {
        let mut rig = rig(revision);
        call(&mut rig, 0, Duration::ZERO);
        // Each use counts.
        for _ in 0..5 {
            pass(&mut rig, IDLE - Duration::from_secs(1));
            call(&mut rig, 0, Duration::ZERO);
        }
        pass(&mut rig, IDLE * 2);
        call(&mut rig, 1, Duration::ZERO);
        rig.assert_quiet();
    }
}

/// Losses delay the next connection, and closing one for want of use is none.
#[test]
fn a_connection_is_opened_again_however_often_it_was_lost_before() {
    let mut rig = rig(NEW);
    for far in 0..3 {
        call(&mut rig, far, Duration::ZERO);
        rig.break_off(far);
    }
    // The delay is one of the system's clock.
    std::thread::sleep(Duration::from_millis(300));
    call(&mut rig, 3, Duration::ZERO);
    pass(&mut rig, IDLE * 3);
    call(&mut rig, 4, Duration::ZERO);
    rig.assert_quiet();
}

/// The time counts from the end of what needs the connection: a call, a session, or a stream of changes.
#[test]
fn a_connection_that_something_needs_stays_open() {
    let mut rig = rig(OLD);
    call(&mut rig, 0, IDLE * 3);
    pass(&mut rig, IDLE - Duration::from_secs(1));
    let session = rig.open(OLD, &json!({}));
    pass(&mut rig, IDLE * 5);
    rig.say(session, &request(2, "tools/call", &json!({"name": "x"})));
    let heard = rig.far_hears(0);
    rig.answer(0, &heard, &json!({"content": []}));
    assert_eq!(rig.hear(session)["id"], 2);
    rig.leave(session);
    pass(&mut rig, IDLE - Duration::from_secs(1));
    let params = json!({"notifications": {"toolsListChanged": true}});
    let stream = rig.post(&stateless(1, "subscriptions/listen", params, &json!({})));
    rig.hear(stream);
    pass(&mut rig, IDLE * 5);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    rig.far_says(0, &changed.to_string());
    rig.hear(stream);
    rig.leave(stream);
    pass(&mut rig, IDLE * 2);
    call(&mut rig, 1, Duration::ZERO);
    rig.assert_quiet();
}

#[test]
fn a_connection_stays_open_for_ever_if_that_is_wanted() {
    let mut rig = Rig::over(OLD, 1, |external| {
        Front::new(external.isolation(Isolation::Shared).idle_time(None))
    });
    call(&mut rig, 0, Duration::ZERO);
    for _ in 0..10 {
        rig.pass(Duration::from_secs(3600));
    }
    call(&mut rig, 0, Duration::ZERO);
    rig.assert_quiet();
}

/// A server that is being closed may say goodbye, while its successor serves a call already.
#[test]
fn what_a_closed_connection_says_belongs_to_no_call_of_the_next_one() {
    let mut rig = rig(OLD);
    call(&mut rig, 0, Duration::ZERO);
    pass(&mut rig, IDLE * 3);
    let params = json!({"name": "x", "_meta": {meta::LOG_LEVEL: "info"}});
    let near = rig.post(&stateless(1, "tools/call", params, &json!({})));
    let heard = loop {
        let heard = rig.far_hears(1);
        if heard["method"] == "tools/call" {
            break heard;
        }
        rig.answer(1, &heard, &json!({}));
    };
    let log = json!({"level": "error", "data": "x"});
    let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log});
    rig.far_says(0, &log.to_string());
    rig.assert_is_waiting(near);
    rig.far_says(1, &log.to_string());
    assert_eq!(rig.hear(near)["params"]["data"], "x");
    rig.answer(1, &heard, &json!({"content": []}));
    assert_eq!(rig.hear(near)["id"], 1);
}
