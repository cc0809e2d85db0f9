//! Neither side waits for the other to read.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use mcpbolt::io::{Driver, Machine, ReadEnd, WriteEnd};
use rustix::pipe::{fcntl_setpipe_size, pipe};

use super::lines::Ask;

const FLOOD: usize = 64 << 20;

fn small_pipe() -> (OwnedFd, OwnedFd) {
    let (read, write) = pipe().unwrap();
    assert_eq!(fcntl_setpipe_size(&write, 4096).unwrap(), 4096);
    (read, write)
}

fn side(read: OwnedFd, write: OwnedFd) -> impl FnOnce() + Send {
    move || {
        let (mut driver, mut poller) = Driver::new().unwrap();
        let wake = driver.wake().clone();
        // One end as inherited, one as our own: both ways of not blocking.
        let (read, write) = (ReadEnd::inherited(read, &wake), WriteEnd::own(write));
        driver.attach(read.unwrap(), write.unwrap()).unwrap();
        let mut machine = Ask::new(&vec![b'x'; FLOOD], FLOOD);
        machine.keep = false;
        let deadline = Instant::now() + Duration::from_secs(120);
        while !machine.is_closed() || !machine.output().is_empty() {
            assert!(
                Instant::now() < deadline,
                "stuck at {} bytes",
                machine.seen_len
            );
            let more = driver.turn(&mut machine, Instant::now());
            poller.wait(&mut driver, Some(deadline), more).unwrap();
        }
        assert_eq!(machine.seen_len, FLOOD);
    }
}

#[test]
fn both_sides_send_64_mib_at_once_through_pipes_of_4_kib() {
    let (left_read, right_write) = small_pipe();
    let (right_read, left_write) = small_pipe();
    let left = std::thread::spawn(side(left_read, left_write));
    side(right_read, right_write)();
    left.join().unwrap();
}
