//! A server as a child: started, drained, ended, and nothing left behind.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpbolt::error::ConnectionError;
use mcpbolt::io::{Machine, Stderr, Step, Waits};

use super::lines::Ask;
use super::peer::{child, eventually};

const WAITS: Waits = Waits {
    after_close: Duration::from_millis(300),
    after_terminate: Duration::from_millis(300),
};

/// The processes of this group that still run.
fn members(group: u32) -> Vec<u32> {
    let numbers = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let fields: Vec<&str> = stat
                .rsplit(')')
                .next()
                .unwrap_or("")
                .split_whitespace()
                .collect();
            fields.first().is_some_and(|state| *state != "Z")
                && fields.get(2) == Some(&&*group.to_string())
        })
        .collect()
}

fn collect() -> (Stderr, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let into = lines.clone();
    (
        Stderr::Lines(Box::new(move |line| {
            into.lock().unwrap().push(line.to_owned())
        })),
        lines,
    )
}

#[test]
fn a_child_answers_and_ends_with_its_stdin() {
    let (stderr, lines) = collect();
    let child = child("serve").stderr(stderr).waits(WAITS).spawn().unwrap();
    let mut ask = Ask::new(
        b"echo one\necho two\n",
        "\nrunning 1 test\necho one\necho two\n".len(),
    );
    let exit = child.run(&mut ask).unwrap();
    assert_eq!((exit.status.code(), exit.step), (Some(0), Step::Closed));
    assert!(String::from_utf8_lossy(&ask.seen).ends_with("echo one\necho two\n"));
    assert_eq!(ask.closed, Some(ConnectionError::ClosedLocally));
    assert!(
        lines
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.starts_with("REPORT")),
        "{lines:?}"
    );
}

#[test]
fn a_childs_death_ends_the_connection_at_once_and_says_how() {
    // The machine is shared: of three tries one must be in time.
    let mut soonest = Duration::MAX;
    for _ in 0..3 {
        let child = child("serve").stderr(Stderr::Discard).spawn().unwrap();
        let pid = child.id();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(150));
            let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
            let now = Instant::now();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            now
        });
        let mut ask = Ask::new(b"wedge\n", usize::MAX);
        let exit = child.run(&mut ask).unwrap();
        let after = ask.ended_at.unwrap() - killer.join().unwrap();
        assert_eq!(exit.step, Step::None);
        let Some(ConnectionError::PeerExited(how)) = ask.closed else {
            panic!("{:?}", ask.closed)
        };
        assert!(how.contains("9"), "{how}");
        soonest = soonest.min(after);
    }
    assert!(soonest < Duration::from_millis(50), "{soonest:?}");
}

/// R-STD-06: what a server logs is taken, and is no failure.
#[test]
fn a_child_that_floods_stderr_is_drained() {
    let seen = Arc::new(Mutex::new(0usize));
    let into = seen.clone();
    let stderr = Stderr::Lines(Box::new(move |line| *into.lock().unwrap() += line.len()));
    let child = child("stderr").stderr(stderr).spawn().unwrap();
    let mut ask = Ask::new(b"echo x\n", "\nrunning 1 test\necho x\n".len());
    let exit = child.run(&mut ask).unwrap();
    assert_eq!(exit.step, Step::Closed);
    assert!(*seen.lock().unwrap() >= 256 << 20);
}

#[test]
fn nothing_is_left_in_the_group() {
    let child = child("tree")
        .stderr(Stderr::Discard)
        .waits(WAITS)
        .spawn()
        .unwrap();
    let group = child.id();
    assert!(eventually(Duration::from_secs(10), || members(group).len() >= 4));
    let mut ask = Ask::new(b"echo x\n", "\nrunning 1 test\necho x\n".len());
    let exit = child.run(&mut ask).unwrap();
    assert_eq!(exit.step, Step::Closed);
    assert!(
        eventually(Duration::from_secs(1), || members(group).is_empty()),
        "{:?}",
        members(group)
    );
}

/// R-STD-07.
#[test]
fn a_deaf_child_is_killed_after_both_waits() {
    let child = child("deaf")
        .stderr(Stderr::Discard)
        .waits(WAITS)
        .spawn()
        .unwrap();
    let group = child.id();
    let stop = child.stop();
    assert!(eventually(Duration::from_secs(10), || members(group).len() >= 2));
    let start = Instant::now();
    stop.stop();
    let mut ask = Ask::new(b"", usize::MAX);
    let exit = child.run(&mut ask).unwrap();
    let took = start.elapsed();
    // The shell is deaf to SIGTERM; its own leader is not.
    assert!(exit.step >= Step::Terminated, "{exit:?}");
    assert!(
        took >= WAITS.after_close && took < Duration::from_secs(2),
        "{took:?}"
    );
    assert!(ask.is_closed());
    assert!(
        eventually(Duration::from_secs(1), || members(group).is_empty()),
        "{:?}",
        members(group)
    );
}

#[test]
fn a_child_that_is_dropped_is_gone() {
    let child = child("tree").stderr(Stderr::Discard).spawn().unwrap();
    let group = child.id();
    assert!(eventually(Duration::from_secs(10), || members(group).len() >= 4));
    drop(child);
    assert!(
        eventually(Duration::from_secs(1), || members(group).is_empty()),
        "{:?}",
        members(group)
    );
}

/// R-STD-16: credentials come from the environment, and only those that are meant to.
#[test]
fn a_child_sees_only_the_variables_it_should() {
    let marker = "cwd=/\n";
    let child = child("environment")
        .cwd("/")
        .env("GIVEN", "value")
        .stderr(Stderr::Discard)
        .spawn()
        .unwrap();
    let mut ask = Ask::new(b"quit\n", usize::MAX);
    child.run(&mut ask).unwrap();
    let seen = String::from_utf8(ask.seen).unwrap();
    assert!(
        seen.contains("GIVEN=value\n") && seen.contains("PATH=") && seen.contains(marker),
        "{seen}"
    );
    // Cargo sets this one for the test itself.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!seen.contains("CARGO_MANIFEST_DIR"), "{seen}");
}

#[test]
fn two_hundred_killed_children_leave_neither_survivors_nor_zombies() {
    let mut groups = Vec::new();
    for n in 0..200 {
        let child = child("serve").stderr(Stderr::Discard).spawn().unwrap();
        groups.push(child.id());
        let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        if n % 2 == 0 {
            child.run(&mut Ask::new(b"echo x\n", usize::MAX)).unwrap();
        }
    }
    for group in groups {
        assert!(members(group).is_empty());
        assert!(
            !std::path::Path::new(&format!("/proc/{group}")).exists(),
            "a zombie is left"
        );
    }
}
