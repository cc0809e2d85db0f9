//! Many processes share logins whose refresh tokens work once: no token is used twice and no login is lost.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

#[path = "../shared/folder.rs"]
mod folder;
mod process;
mod server;

use std::time::{Duration, Instant};

use folder::Folder;
use process::{Process, STEPS};
use server::Server;

const PROCESSES: usize = 20;
/// How many access tokens end while they run.
const EXPIRIES: u64 = 1000;
/// The same, while processes are killed.
const EXPIRIES_WITH_KILLS: u64 = 200;

/// R-AUC-17: a server that rotates refresh tokens and revokes a login when one is used again.
#[test]
fn twenty_processes_use_no_refresh_token_twice() {
    let folder = Folder::new();
    let server = Server::start();
    let logins = ["one", "two"];
    for login in logins {
        process::log_in(folder.path(), server.port(), login);
    }
    server.until(EXPIRIES);
    let processes: Vec<_> = (0..PROCESSES)
        .map(|number| Process::start(folder.path(), server.port(), logins[number % 2], None))
        .collect();
    for process in processes {
        assert!(process.wait().success());
    }
    let seen = server.seen();
    assert!(seen.refreshes >= EXPIRIES, "{seen:?}");
    assert_eq!(
        (seen.reused, seen.logins),
        (0, logins.len() as u64),
        "{seen:?}"
    );
    // Each process went on with what another one had got, far more often than it asked.
    assert!(seen.uses > seen.refreshes * 2, "{seen:?}");
}

/// A process that dies at any step of a refresh costs at most the login whose answer it took with it, and
/// delays nobody.
#[test]
fn a_process_that_dies_in_a_refresh_loses_at_most_the_answer() {
    for (step, may_lose) in STEPS {
        let folder = Folder::new();
        let server = Server::start();
        process::log_in(folder.path(), server.port(), "dies");
        process::log_in(folder.path(), server.port(), "lives");
        server.until(3);
        let dies = Process::start(folder.path(), server.port(), "dies", Some(step));
        assert!(!dies.wait().success(), "{step}");
        for login in ["dies", "lives"] {
            server.until(server.seen().refreshes + 3);
            let process = Process::start(folder.path(), server.port(), login, None);
            assert!(process.wait().success(), "{step}");
        }
        let seen = server.seen();
        let lost = u64::from(may_lose);
        assert_eq!(
            (seen.reused, seen.logins),
            (lost, 2 + lost),
            "{step}: {seen:?}"
        );
    }
}

/// The same by `kill -9` at random moments: a token is used again only if the answer to its first use was
/// never kept.
#[test]
fn processes_killed_at_random_lose_no_kept_answer() {
    let folder = Folder::new();
    let server = Server::start();
    process::log_in(folder.path(), server.port(), "one");
    server.until(u64::MAX);
    let seed = u64::from(std::process::id()) ^ u64::from(server.port());
    println!("seed {seed}");
    let mut random = seed;
    let start = || Process::start(folder.path(), server.port(), "one", None);
    let mut processes: Vec<_> = (0..6).map(|_| start()).collect();
    let begun = Instant::now();
    let mut kills = 0;
    while server.seen().refreshes < EXPIRIES_WITH_KILLS {
        assert!(
            begun.elapsed() < Duration::from_secs(600),
            "{:?}",
            server.seen()
        );
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        std::thread::sleep(Duration::from_millis(5 + (random >> 33) % 40));
        let victim = (random >> 40) as usize % processes.len();
        processes[victim].kill();
        processes[victim] = start();
        kills += 1;
    }
    server.until(0);
    for process in processes {
        assert!(process.wait().success());
    }
    let seen = server.seen();
    println!("{kills} kills, {seen:?}");
    assert_eq!(seen.reused_after_kept, 0, "{seen:?}");
    assert!(seen.reused <= kills, "{seen:?}");
}
