//! Logins on another device (RFC 8628): how long they ask, and what ends them.

use mcpbolt_oauth::client::{Grant, LoginStage};
use serde_json::{Value, json};

use crate::world::{Reply, World, error};

fn world() -> World {
    let mut world = World::new();
    world.options.grant = Grant::DeviceCode;
    world.device["expires_in"] = json!(600);
    world
}

fn reply(status: u16, body: Value) -> Reply {
    (status, Vec::new(), body)
}

/// Section 3.5: while the server cannot be reached, each pause is twice the one before.
#[test]
fn a_device_that_cannot_reach_the_server_asks_ever_less() {
    let mut world = world();
    for (status, body) in [
        (0, json!(null)),
        (503, json!("busy")),
        (429, json!(null)),
        (500, json!({"error": "server_error"})),
    ] {
        world.tokens.push_back(reply(status, body));
    }
    world.log_in().unwrap();
    assert_eq!(world.waited, 10 + 20 + 40 + 80 + 160);
    // An answer ends that. What the server says about its pace stays.
    world.waited = 0;
    for said in [
        error("slow_down"),
        reply(0, json!(null)),
        error("authorization_pending"),
        error("slow_down"),
    ] {
        world.tokens.push_back(said);
    }
    world.log_in().unwrap();
    assert_eq!(world.waited, 10 + 15 + 30 + 15 + 20);
}

/// Requests without an answer take time, too: the code's end is the end.
#[test]
fn a_code_that_has_ended_is_asked_about_no_more() {
    for (silence, status, expected) in [
        (
            0,
            0,
            "unreachable; the code has ended meanwhile: log in again",
        ),
        (
            30,
            0,
            "unreachable; the code has ended meanwhile: log in again",
        ),
        (
            300,
            0,
            "unreachable; the code has ended meanwhile: log in again",
        ),
        (0, 400, "the code was not entered in time; log in again"),
    ] {
        let mut world = world();
        world.silence = silence;
        let answer = || match status {
            0 => reply(0, json!(null)),
            _ => error("authorization_pending"),
        };
        world.tokens = std::iter::repeat_with(answer).take(999).collect();
        let (begun, why) = (world.now, world.log_in().unwrap_err());
        assert!(why.to_string().contains(expected), "{why}");
        let took = world.now - begun;
        assert!(
            (600..600 + 10 + silence + 1).contains(&took),
            "{silence}: {took}"
        );
    }
}

/// What no waiting changes ends the login at once, and the error says who said what, and what to do.
#[test]
fn a_server_that_refuses_is_asked_once() {
    let cases = [
        (
            error("access_denied"),
            "answered access_denied: said; log in again",
        ),
        (error("expired_token"), "not entered in time; log in again"),
        (
            error("invalid_grant"),
            "answered invalid_grant: said; log in again",
        ),
        (error("invalid_client"), "check the id and secret"),
        (error("unsupported_grant_type"), "or use another"),
        (error("of_its_own"), "ask the operator"),
        (
            reply(401, json!({"error": "invalid_client"})),
            "check the id and secret",
        ),
        (
            reply(404, json!(null)),
            "answered with status 404; ask its operator",
        ),
        (
            reply(403, json!("<html>")),
            "answered with status 403; ask its operator",
        ),
        (
            reply(302, json!(null)),
            "answered with status 302; ask its operator",
        ),
        (
            reply(200, json!("<html>")),
            "is no token response; ask the operator",
        ),
        (
            reply(200, json!({"access_token": 7})),
            "is no token response; ask the operator",
        ),
    ];
    for (said, expected) in cases {
        let mut world = world();
        world.tokens.push_back(said);
        let why = world.log_in().unwrap_err();
        assert_eq!(why.stage, LoginStage::Token, "{why}");
        assert!(why.to_string().contains(expected), "{why}");
        assert_eq!(world.forms().len(), 1, "{why}");
    }
}

/// Section 3.2: the pace is the server's, in numbers as servers write them.
#[test]
fn the_server_says_how_often_it_is_asked() {
    for (interval, pause) in [
        (json!(120), 120),
        (json!("7"), 7),
        (json!(2.5), 2),
        (json!(0), 1),
        (json!(null), 5),
        (json!(u64::MAX), 600),
    ] {
        let mut world = world();
        world.device["interval"] = interval.clone();
        world.log_in().unwrap();
        assert_eq!(world.waited, pause, "{interval}");
    }
    for (name, value) in [
        ("device_code", json!(null)),
        ("user_code", json!(7)),
        ("verification_uri", json!("https://as.example/\u{1b}[2J")),
        ("verification_uri", json!("javascript:x")),
        ("verification_uri_complete", json!("http://as.example/")),
    ] {
        let mut world = world();
        world.device[name] = value;
        let why = world.log_in().unwrap_err();
        assert_eq!(why.stage, LoginStage::Authorization, "{why}");
        assert!(world.forms().is_empty() && world.waited == 0, "{why}");
    }
}
