//! The telemetry of another language at a front: requests wait for its spans, and what waits for the host is bounded.

use std::sync::Arc;

use mcpbolt::mcp::{Revision, TraceContext};
use mcpbolt::telemetry::{HostTelemetry, MAX_RECORDS, TelemetryHost};
use serde_json::{Value, json};

use crate::rig::{Rig, request};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;

/// A host that is blocked until the test takes what there is.
#[derive(Debug)]
struct Blocked;

impl TelemetryHost for Blocked {
    fn wake(&self) {}

    fn sent(&self, _: &dyn Fn() -> String) -> Option<TraceContext> {
        None
    }
}

/// A front with that host, and its client.
fn front() -> (HostTelemetry, Rig, usize) {
    let telemetry = HostTelemetry::new(Blocked);
    let mut rig = Rig::with(OLD, 1, |front| {
        let observed = front.observer(Arc::new(telemetry.clone()));
        observed.with(telemetry.clone())
    });
    let near = rig.open(OLD, &json!({}));
    take(&telemetry);
    (telemetry, rig, near)
}

fn take(telemetry: &HostTelemetry) -> Vec<Value> {
    let taken = telemetry.take();
    taken.map_or_else(Vec::new, |it| serde_json::from_str(&it).unwrap())
}

fn call(id: u64) -> String {
    request(id, "tools/call", &json!({"name": "x"}))
}

fn cancel(id: u64) -> String {
    let params = json!({"requestId": id});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string()
}

#[test]
fn a_request_that_ends_before_the_host_has_taken_it_is_only_a_record() {
    let (telemetry, mut rig, near) = front();
    rig.say(near, &call(1));
    rig.say(near, &cancel(1));
    let [record] = &take(&telemetry)[..] else {
        panic!("one record, and no request that waits")
    };
    assert_eq!(record["begun"][1][0], "tools/call x");
    // It was dropped, not passed on.
    rig.assert_quiet();
}

#[test]
fn a_request_that_ends_after_the_host_has_taken_it_has_its_span_there() {
    let (telemetry, mut rig, near) = front();
    rig.say(near, &call(1));
    let [asked] = &take(&telemetry)[..] else {
        panic!("one request that waits")
    };
    let key = &asked["passes"][0][0];
    rig.say(near, &cancel(1));
    assert!(!telemetry.passed(key.as_u64().unwrap(), None), "it is over");
    let [record] = &take(&telemetry)[..] else {
        panic!("one record")
    };
    assert_eq!((&record["key"], record.get("begun")), (key, None));
    rig.assert_quiet();
}

#[test]
fn a_flood_of_cancelled_requests_leaves_no_more_than_the_bound() {
    const AT_ONCE: u64 = 1024;
    let (telemetry, mut rig, near) = front();
    for first in (0..MAX_RECORDS as u64 + AT_ONCE).step_by(AT_ONCE as usize) {
        let lines = (first..first + AT_ONCE).flat_map(|id| [call(id), cancel(id)]);
        rig.say(near, &lines.collect::<Vec<_>>().join("\n"));
    }
    let taken = take(&telemetry);
    assert!(taken.iter().all(|it| it.get("passes").is_none()));
    assert_eq!(taken.len(), MAX_RECORDS);
    rig.assert_quiet();
}
