//! When and how a server on stdin and stdout ends.

use std::time::Duration;

use rustix::process::Signal;

use super::peer::{Peer, eventually, is_running};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
/// The time that an end may take beyond its grace period, if it has one.
const PROMPT: Duration = Duration::from_millis(100);
/// The time that an abrupt end may take.
const ABRUPT: Duration = Duration::from_secs(1);

fn ready(grace: Duration) -> Peer {
    let mut peer = Peer::start("serve", grace);
    peer.await_stderr("READY");
    peer.roundtrip("echo hello");
    peer
}

/// The machine is shared: of three tries one must be in time.
fn in_time(limit: Duration, mut attempt: impl FnMut() -> Duration) {
    let took: Vec<Duration> = (0..3).map(|_| attempt()).collect();
    assert!(
        took.iter().any(|took| *took <= limit),
        "{took:?} > {limit:?}"
    );
}

/// R-STD-08.
#[test]
fn ends_at_once_at_the_end_of_stdin() {
    in_time(PROMPT, || {
        let mut peer = ready(LONG);
        drop(peer.stdin.take());
        let (status, report, took) = peer.finish();
        assert!(status.success());
        assert!(
            report.contains("EndOfInput") && report.contains("unanswered: 0"),
            "{report}"
        );
        took
    });
}

#[test]
fn answers_what_is_in_flight_at_the_end_of_stdin() {
    let mut peer = ready(LONG);
    peer.send("slow 200 first");
    peer.send("slow 100 second");
    drop(peer.stdin.take());
    assert_eq!(peer.receive(), "slow 100 second");
    assert_eq!(peer.receive(), "slow 200 first");
    assert!(peer.finish().1.contains("unanswered: 0"));
}

#[test]
fn a_wedged_handler_holds_the_process_for_the_grace_period_only() {
    in_time(SHORT + PROMPT, || {
        let mut peer = ready(SHORT);
        peer.send("wedge");
        peer.roundtrip("echo after");
        drop(peer.stdin.take());
        let (status, report, took) = peer.finish();
        assert!(
            status.success() && report.contains("unanswered: 1"),
            "{report}"
        );
        assert!(took >= SHORT - PROMPT, "gave only {took:?}");
        took
    });
}

#[test]
fn a_handler_that_holds_the_loops_thread_does_not_hold_the_process() {
    for signal in [None, Some(Signal::TERM)] {
        in_time(SHORT + PROMPT, || {
            let mut peer = ready(SHORT);
            peer.send("block");
            std::thread::sleep(PROMPT);
            match signal {
                Some(signal) => peer.signal(signal),
                None => drop(peer.stdin.take()),
            }
            let (status, _, took) = peer.finish();
            assert_eq!(status.code(), Some(1));
            assert!(took >= SHORT, "gave only {took:?}");
            took
        });
    }
}

#[test]
fn a_signal_ends_an_idle_server_at_once() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        in_time(PROMPT, || {
            let peer = ready(LONG);
            peer.signal(signal);
            let (status, report, took) = peer.finish();
            assert!(status.success() && report.contains("Signal("), "{report}");
            took
        });
    }
}

#[test]
fn a_signal_leaves_time_for_what_is_in_flight() {
    let mut peer = ready(LONG);
    peer.send("slow 200 x");
    peer.roundtrip("echo sent");
    peer.signal(Signal::TERM);
    assert_eq!(peer.receive(), "slow 200 x");
    assert!(peer.finish().1.contains("unanswered: 0"));
}

#[test]
fn a_second_signal_does_not_wait() {
    in_time(ABRUPT, || {
        let mut peer = ready(LONG);
        peer.send("wedge");
        peer.roundtrip("echo sent");
        peer.signal(Signal::TERM);
        std::thread::sleep(Duration::from_millis(100));
        assert!(is_running(peer.process.id()));
        peer.signal(Signal::TERM);
        peer.finish().2
    });
}

#[test]
fn a_reader_that_is_gone_ends_even_an_idle_server() {
    in_time(ABRUPT, || {
        let mut peer = ready(LONG);
        peer.send("wedge");
        drop(peer.stdout.take());
        let (status, report, took) = peer.finish();
        assert!(
            status.success() && report.contains("BrokenPipe"),
            "{report}"
        );
        took
    });
}

#[test]
fn the_death_of_the_parent_ends_it() {
    in_time(ABRUPT, || {
        let mut peer = Peer::start("parent", LONG);
        let child = peer.await_stderr("CHILD ");
        let child: u32 = child["CHILD ".len()..].parse().unwrap();
        peer.send("wedge");
        peer.roundtrip("echo through the wrapper");
        let start = std::time::Instant::now();
        peer.process.kill().unwrap();
        peer.process.wait().unwrap();
        assert!(eventually(LONG, || !is_running(child)));
        let took = start.elapsed();
        assert!(peer.await_stderr("REPORT").contains("ParentDied"));
        took
    });
}

#[test]
fn the_death_of_the_thread_that_spawned_it_does_not() {
    let mut peer = Peer::start("thread", LONG);
    peer.await_stderr("READY");
    std::thread::sleep(Duration::from_millis(700));
    peer.roundtrip("echo still here");
    drop(peer.stdin.take());
    assert!(peer.finish().1.contains("EndOfInput"));
}

/// R-STD-06: what is printed is no message, and goes where the log goes.
#[test]
fn stray_output_never_reaches_the_wire() {
    let mut peer = ready(LONG);
    peer.send("print stray");
    assert_eq!(peer.receive(), "done");
    peer.await_stderr("stray");
    peer.roundtrip("echo after");
}

#[test]
fn a_protocol_that_closes_itself_ends_the_loop() {
    let mut peer = ready(LONG);
    peer.send("echo last words");
    peer.send("quit");
    assert_eq!(peer.receive(), "echo last words");
    assert!(peer.finish().1.contains("Closed"));
}

/// R-ACT-20: a process for one request ends once it is answered, while its input is still open.
#[test]
fn one_request_and_its_answer() {
    for (action, answer) in [
        (r#"{"action":"echo","params":{"text":"hello"}}"#, "hello"),
        (r#"{"action":"block","params":{"ms":50}}"#, "slept"),
        (r#"{"action":"nothing","params":{}}"#, "ACTION_NOT_FOUND"),
        ("{\"action\":", "INVALID_JSON"),
    ] {
        let mut peer = Peer::start("once", LONG);
        peer.send(action);
        let said = peer.receive();
        assert!(said.contains(answer), "{action}: {said}");
        let (_, report, _) = peer.finish();
        assert!(
            report.contains("Answered") && report.contains("unanswered: 0"),
            "{report}"
        );
    }
}
