//! Every kind of descriptor works, and is left as it was found.

use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::pipe::pipe;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::peer::{Peer, next_line};

fn flags(fd: &OwnedFd) -> OFlags {
    fcntl_getfl(fd).unwrap()
}

/// Talks to a server over these ends and checks the flags of its ends, which this process still
/// holds, while it runs and after.
fn speak(theirs: [OwnedFd; 2], ours: [OwnedFd; 2]) {
    let before = [flags(&theirs[0]), flags(&theirs[1])];
    let again = |fd: &OwnedFd| fd.try_clone().unwrap();
    let mut peer = Peer::over(again(&theirs[0]), again(&theirs[1]));
    peer.await_stderr("READY");
    let [to, from] = ours;
    let (mut to, mut from) = (File::from(to), BufReader::new(File::from(from)));
    for n in 0..100 {
        let line = format!("echo {n}");
        to.write_all(format!("{line}\n").as_bytes()).unwrap();
        assert_eq!(next_line(&mut from), line);
        assert_eq!([flags(&theirs[0]), flags(&theirs[1])], before);
        if n % 30 == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    peer.signal(rustix::process::Signal::TERM);
    assert!(peer.finish().0.success());
    assert_eq!([flags(&theirs[0]), flags(&theirs[1])], before);
}

/// R-STD-05: each answer is there before more is asked.
#[test]
fn pipes() {
    let (stdin, to) = pipe().unwrap();
    let (from, stdout) = pipe().unwrap();
    speak([stdin, stdout], [to, from]);
}

#[test]
fn pipes_that_somebody_switched_to_not_block() {
    let (stdin, to) = pipe().unwrap();
    let (from, stdout) = pipe().unwrap();
    for fd in [&stdin, &stdout] {
        fcntl_setfl(fd, flags(fd) | OFlags::NONBLOCK).unwrap();
    }
    speak([stdin, stdout], [to, from]);
}

/// R-STD-15: a socket is spoken on as a pipe is.
#[test]
fn one_socket_for_both_ways() {
    let (theirs, ours) = UnixStream::pair().unwrap();
    let both = |socket: UnixStream| [socket.try_clone().unwrap().into(), OwnedFd::from(socket)];
    speak(both(theirs), both(ours));
}

#[test]
fn a_socket_for_each_way() {
    let (stdin, to) = UnixStream::pair().unwrap();
    let (from, stdout) = UnixStream::pair().unwrap();
    speak([stdin.into(), stdout.into()], [to.into(), from.into()]);
}

/// A terminal without echo and line editing, as (controller, terminal).
fn terminal() -> (OwnedFd, OwnedFd) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut settings = rustix::termios::tcgetattr(&terminal).unwrap();
    settings.make_raw();
    rustix::termios::tcsetattr(&terminal, rustix::termios::OptionalActions::Now, &settings)
        .unwrap();
    (controller, terminal)
}

#[test]
fn a_terminal() {
    let (controller, terminal) = terminal();
    let both = |fd: OwnedFd| [fd.try_clone().unwrap(), fd];
    speak(both(terminal), both(controller));
}

#[test]
fn a_terminal_that_somebody_switched_to_not_block() {
    let (controller, terminal) = terminal();
    fcntl_setfl(&terminal, flags(&terminal) | OFlags::NONBLOCK).unwrap();
    let both = |fd: OwnedFd| [fd.try_clone().unwrap(), fd];
    speak(both(terminal), both(controller));
}

/// Time on a CPU, in clock ticks of 10 ms.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    fields
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum()
}

#[test]
fn a_terminal_that_nobody_reads_holds_up_neither_reading_nor_a_cpu() {
    const LINES: usize = 20_000;
    let (controller, terminal) = terminal();
    let mut peer = Peer::over(terminal.try_clone().unwrap(), terminal);
    peer.await_stderr("READY");
    let mut to = File::from(controller.try_clone().unwrap());
    let line = format!("echo {}\n", "x".repeat(60));
    for _ in 0..LINES {
        to.write_all(line.as_bytes()).unwrap();
    }
    std::thread::sleep(Duration::from_millis(200));
    let before = ticks(peer.process.id());
    std::thread::sleep(Duration::from_millis(600));
    let spent = ticks(peer.process.id()) - before;
    assert!(spent <= 3, "{spent} ticks spent on waiting");
    let mut from = BufReader::new(File::from(controller));
    for _ in 0..LINES {
        assert_eq!(next_line(&mut from), line.trim_end());
    }
    peer.signal(rustix::process::Signal::TERM);
    assert!(peer.finish().0.success());
}

#[test]
fn regular_files() {
    let mut questions = tempfile("questions");
    let answers = tempfile("answers");
    let lines: String = (0..10_000).map(|n| format!("echo {n}\n")).collect();
    questions.write_all(lines.as_bytes()).unwrap();
    questions.rewind().unwrap();
    let peer = Peer::over(questions.into(), answers.try_clone().unwrap().into());
    let (status, report, _) = peer.finish();
    assert!(
        status.success() && report.contains("EndOfInput"),
        "{report}"
    );
    let mut seen = String::new();
    let mut answers = answers;
    answers.rewind().unwrap();
    answers.read_to_string(&mut seen).unwrap();
    let seen: String = seen
        .lines()
        .filter(|line| line.starts_with("echo "))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(
        seen == lines,
        "{} of {} bytes came out",
        seen.len(),
        lines.len()
    );
}

/// A file for reading and writing that has no name any more.
fn tempfile(name: &str) -> File {
    let path = std::env::temp_dir().join(format!("mcpbolt-{}-{name}", std::process::id()));
    let mut options = File::options();
    let file = options
        .read(true)
        .append(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(path).unwrap();
    file
}
