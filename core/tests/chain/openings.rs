//! Connections to servers whose era nobody knows yet: how many are opened, and in whose place.

use std::time::Duration;

use mcpbolt::connection::{Framing, Principal};
use mcpbolt::limits::Limits;
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::policy::{Credentials, Policy};
use serde_json::{Value, json};

use crate::rig::{Rig, request};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;
const OVERLOADED: i64 = -31999;
const UNAUTHENTICATED: i64 = -31995;

/// A front before a server of 2026-07-28 alone, which has one connection at most and answers by a script.
fn rig() -> Rig {
    let mut rig = Rig::changing(NEW, |external| {
        external.revisions(Revisions::ALL).max_connections(1)
    });
    rig.silent = vec!["far"];
    rig
}

/// A client begins a session of the handshake era.
fn begin(rig: &mut Rig) -> usize {
    let near = rig.connect(Framing::Line);
    let params = json!({"protocolVersion": OLD.name(), "capabilities": {}, "clientInfo": {"name": "near", "version": "1"}});
    rig.say(near, &request("open", "initialize", &params));
    near
}

/// The server refuses a request.
fn refuse(rig: &mut Rig, far: usize, heard: &Value) {
    let error = json!({"code": -32601, "message": "what is that?"});
    let line = json!({"jsonrpc": "2.0", "id": heard["id"], "error": error});
    rig.far_says(far, &line.to_string());
}

/// R-CHN-13: a server that refuses a handshake is asked in the other era on the same connection: a command is started once.
#[test]
fn a_server_that_refuses_a_handshake_is_asked_on_the_same_connection() {
    let mut rig = rig();
    let near = begin(&mut rig);
    let handshake = rig.far_hears(0);
    assert_eq!(handshake["method"], "initialize");
    refuse(&mut rig, 0, &handshake);
    rig.far_opens(0);
    let opened = rig.hear(near);
    assert_eq!(opened["result"]["protocolVersion"], OLD.name(), "{opened}");
    assert_eq!(rig.fars.lock().unwrap().len(), 1);
}

/// One that refuses both eras has answered, and is not connected to again.
#[test]
fn a_server_that_refuses_both_eras_is_given_up() {
    let mut rig = rig();
    let near = begin(&mut rig);
    for method in ["initialize", "server/discover"] {
        let heard = rig.far_hears(0);
        assert_eq!(heard["method"], method);
        refuse(&mut rig, 0, &heard);
    }
    let error = rig.hear(near)["error"].take();
    assert_eq!(error["data"]["reason"], "upstream_unavailable", "{error}");
    assert_eq!(rig.fars.lock().unwrap().len(), 1);
    rig.assert_quiet();
}

/// One that hangs in a handshake has not answered, and gets a connection in the other era.
#[test]
fn a_server_that_hangs_in_a_handshake_is_connected_to_again() {
    let mut rig = rig();
    let near = begin(&mut rig);
    for method in ["initialize", "server/discover"] {
        assert_eq!(rig.far_hears(0)["method"], method);
        rig.pass(Limits::STDIO.handshake_timeout + Duration::from_secs(1));
    }
    rig.carrier_ends(0);
    rig.far_opens(1);
    let opened = rig.hear(near);
    assert_eq!(opened["result"]["protocolVersion"], OLD.name(), "{opened}");
}

/// A server may end rather than refuse a handshake. The connection in the other era takes the place of that one, which no other client
/// gets in between; and connections that are opened later are opened in that era.
#[test]
fn a_server_that_ends_at_a_handshake_keeps_its_place_for_the_other_era() {
    let mut rig = rig();
    let near = begin(&mut rig);
    assert_eq!(rig.far_hears(0)["method"], "initialize");
    rig.far_closes(0);
    let other = begin(&mut rig);
    assert_eq!(rig.hear(other)["error"]["code"], OVERLOADED);
    rig.assert_is_waiting(near);
    rig.carrier_ends(0);
    rig.far_opens(1);
    let opened = rig.hear(near);
    assert_eq!(opened["result"]["protocolVersion"], OLD.name(), "{opened}");

    rig.leave(near);
    rig.carrier_ends(1);
    let next = begin(&mut rig);
    let opening = rig.far_hears(2);
    assert_eq!(opening["method"], "server/discover");
    refuse(&mut rig, 2, &opening);
    // It has been replaced by an older one.
    rig.fars.lock().unwrap()[2].revision = OLD;
    rig.far_opens(2);
    assert!(rig.hear(next)["result"].is_object());
    assert_eq!(rig.fars.lock().unwrap().len(), 3);
}

/// Requests of a client whose `initialize` was refused are answered.
#[test]
fn a_session_that_was_refused_answers() {
    let verified = |credentials: &Credentials<'_>| match credentials {
        Credentials::Bearer(name) => Ok(Principal::new(*name)),
        _ => Err("who is it?"),
    };
    let mut rig = Rig::with(OLD, 1, |front| {
        front.policy(Policy::new().verifier(verified))
    });
    let near = begin(&mut rig);
    let refused = rig.hear(near);
    assert_eq!(refused["error"]["code"], UNAUTHENTICATED, "{refused}");
    let auth = json!({"_meta": {"auth": {"type": "bearer", "token": "ann"}}});
    rig.say(near, &request("late", "tools/list", &auth));
    let refused = rig.hear(near);
    assert_eq!(refused["id"], "late");
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
}
