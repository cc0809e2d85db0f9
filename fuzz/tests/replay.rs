//! The laws on every corpus message, cut and padded at every position, and on random input.

use std::time::Duration;

use mcpbolt_fuzz::random::Random;
use mcpbolt_fuzz::{action, corpus, laws, run};

#[test]
fn every_prefix_of_every_corpus_message_keeps_the_laws() {
    for message in corpus::messages() {
        let bytes = message.as_bytes();
        let step = 1 + bytes.len() / 600;
        for end in (0..bytes.len()).step_by(step).chain([bytes.len()]) {
            laws::grammar(&bytes[..end]);
            laws::message(&bytes[..end]);
            action::message(&bytes[..end]);
        }
    }
}

#[test]
fn the_corpus_shifted_across_block_boundaries_keeps_the_laws() {
    for message in corpus::messages() {
        for shift in (0..130).step_by(3) {
            let shifted = " ".repeat(shift) + &message;
            laws::message(shifted.as_bytes());
            laws::kernel_twins(("x".repeat(shift) + &message).as_bytes());
        }
    }
}

#[test]
fn a_stream_of_the_corpus_is_the_same_cut_at_any_point() {
    let mut random = Random::new(7);
    let stream = corpus::messages().join("\n");
    let line = stream.lines().map(str::len).max();
    for max_len in [10, 100, line.unwrap_or(0)] {
        laws::lines(stream.as_bytes(), max_len, &mut random);
    }
    for message in corpus::messages() {
        let stream = message + "\n{}\r\n";
        let whole = laws::split([stream.as_bytes()], stream.len());
        for at in 0..=stream.len() {
            let (a, b) = stream.as_bytes().split_at(at);
            let cut = laws::split([a, b], stream.len());
            assert_eq!(cut, whole, "cut at {at}: {stream}");
        }
    }
    laws::lines(b" \x0c\n\x0c \n{}\n", 20, &mut random);
    laws::lines(b"{\"a\":1}\n   \n\r\n  \n", 2, &mut random);
    let short: String = stream.chars().take(1200).collect();
    let whole = laws::split([short.as_bytes()], 500);
    for at in 0..=short.len() {
        let (a, b) = short.as_bytes().split_at(at);
        assert_eq!(laws::split([a, b], 500), whole, "cut at {at}");
    }
}

/// Checks a law on random input for `MCPBOLT_FUZZ_SECONDS` seconds, 1 by default, but on at least 200
/// inputs even on a slow machine.
fn for_a_while(law: run::Law) {
    let seconds = std::env::var("MCPBOLT_FUZZ_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut seed = u64::from(std::process::id());
    let mut cases = 0;
    while cases < 200 {
        eprintln!("seed {seed}");
        cases += run::law(law, seed, Duration::from_secs(seconds), |_| {});
        seed += 1;
    }
}

#[test]
fn random_damage_keeps_the_laws_of_messages() {
    for_a_while(run::MESSAGES);
}

#[test]
fn random_damage_keeps_the_laws_of_kernels() {
    for_a_while(run::OTHERS[0]);
}

#[test]
fn random_damage_keeps_the_laws_of_strings() {
    for_a_while(run::OTHERS[1]);
}

#[test]
fn random_damage_keeps_the_laws_of_streams() {
    for_a_while(run::OTHERS[2]);
}

#[test]
fn random_damage_keeps_the_laws_of_round_trips() {
    for_a_while(run::OTHERS[3]);
}

#[test]
fn random_damage_keeps_the_laws_of_streams_of_events() {
    for_a_while(run::OTHERS[4]);
}

#[test]
fn random_damage_keeps_the_laws_of_websockets() {
    for_a_while(run::OTHERS[5]);
}

#[cfg(feature = "http")]
#[test]
fn random_damage_keeps_the_law_of_http() {
    for_a_while(run::OTHERS[8]);
}

#[test]
fn random_damage_keeps_the_law_of_the_action_dialect() {
    for_a_while(run::OTHERS[6]);
}

#[cfg(feature = "http")]
#[test]
fn random_damage_keeps_the_law_of_servers_of_the_action_dialect() {
    for_a_while(run::OTHERS[9]);
}

#[test]
fn random_damage_keeps_the_laws_of_challenges() {
    for_a_while(run::OTHERS[7]);
}

/// A regression test: the law of the action dialect once took the members of such an object for missing.
#[test]
fn a_name_that_serde_json_cannot_read_is_no_fault_of_the_engine() {
    action::message(
        br#"{"status":"error","error":{"type":"X","message":"m","deta\ud800ils":{},"code":1}}"#,
    );
}
