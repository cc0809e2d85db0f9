//! Many hostile connections on one thread with a limited share of a core.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
use nix::time::{ClockId, clock_gettime};

use super::scripts::{self, Script};

/// The share of a core that attackers may use.
const PART: f64 = 0.3;
/// How many connections take a turn between two checks of the clock.
const ROUND: usize = 32;

/// The activity of the attackers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    pub connections: u64,
    pub bytes: u64,
    /// The share of a core that they used.
    pub part: f64,
}

/// A hostile connection, which is opened again after each end.
struct Attacker<'a> {
    script: &'a Script,
    from: Ipv4Addr,
    stream: Option<TcpStream>,
    sent: usize,
    /// When all bytes had been sent.
    since: Option<Instant>,
}

/// Attacks until `stop`.
pub fn attack(to: SocketAddrV4, from: &[Ipv4Addr], count: usize, stop: &AtomicBool) -> Done {
    let scripts = scripts::all(&to.to_string());
    let mut attackers: Vec<_> = (0..count)
        .map(|index| Attacker {
            script: &scripts[index % scripts.len()],
            from: from[index / scripts.len() % from.len()],
            stream: None,
            sent: 0,
            since: None,
        })
        .collect();
    let (begin, before) = (Instant::now(), cpu());
    let mut done = Done::default();
    while !stop.load(Relaxed) {
        for some in attackers.chunks_mut(ROUND) {
            for attacker in some {
                attacker.turn(to, &mut done);
            }
            throttle(begin, before);
            if stop.load(Relaxed) {
                break;
            }
        }
    }
    done.part = cpu().saturating_sub(before).as_secs_f64() / begin.elapsed().as_secs_f64();
    done
}

/// Sleeps if the attackers have used more than their share.
fn throttle(begin: Instant, before: Duration) {
    let used = cpu().saturating_sub(before);
    let owed = used.div_f64(PART).saturating_sub(begin.elapsed());
    if !owed.is_zero() {
        thread::sleep(owed.min(Duration::from_millis(200)));
    }
}

/// The CPU time of this thread.
fn cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

impl Attacker<'_> {
    fn turn(&mut self, to: SocketAddrV4, done: &mut Done) {
        let stays = self.script.stays;
        if self.since.is_some_and(|since| since.elapsed() > stays) {
            self.end();
        }
        let Some(stream) = &mut self.stream else {
            self.stream = open(to, self.from);
            done.connections += 1;
            return;
        };
        let all = &self.script.bytes;
        let piece = &all[self.sent..all.len().min(self.sent + self.script.piece)];
        if !piece.is_empty() {
            match stream.write(piece) {
                Ok(count) => {
                    self.sent += count;
                    done.bytes += count as u64;
                }
                Err(error) if is_for_now(error.kind()) => {}
                Err(_) => return self.end(),
            }
        } else if self.since.is_none() {
            self.since = Some(Instant::now());
        }
        if self.script.reads {
            let mut into = [0; 16 << 10];
            match stream.read(&mut into) {
                Ok(0) => self.end(),
                Err(error) if !is_for_now(error.kind()) => self.end(),
                _ => {}
            }
        }
    }

    /// Ends the connection; the next turn opens a new one.
    fn end(&mut self) {
        (self.stream, self.sent, self.since) = (None, 0, None);
    }
}

fn is_for_now(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected
    )
}

/// Opens a non-blocking connection; `None` if the system refuses it.
fn open(to: SocketAddrV4, from: Ipv4Addr) -> Option<TcpStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Inet, SockType::Stream, flags, None).ok()?;
    bind(
        fd.as_raw_fd(),
        &SockaddrIn::from(SocketAddrV4::new(from, 0)),
    )
    .ok()?;
    match connect(fd.as_raw_fd(), &SockaddrIn::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Some(TcpStream::from(fd)),
        Err(_) => None,
    }
}

/// The address if it is IPv4, which has many loopback addresses.
pub fn v4(address: SocketAddr) -> Option<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    }
}
