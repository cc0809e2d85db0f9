//! Reads a stream continuously, so that its writer is never blocked.

use std::fmt;
use std::io;

use mio::{Registry, Token};

use super::ends::ReadEnd;
use super::lines::Lines;

/// Bytes read in one turn before other work is done.
const BUDGET_BYTES: usize = 256 << 10;
/// Bytes read after the writer has ended: a pipe holds no more unless it was enlarged.
const LAST_BYTES: usize = 1 << 20;

/// The read end of a child's stderr, and the sink for its lines.
pub(super) struct StderrReader {
    end: Option<ReadEnd>,
    /// There may be something to read; stays set until all of it is read.
    readable: bool,
    buffer: Box<[u8]>,
    lines: Lines,
}

impl fmt::Debug for StderrReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StderrReader")
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl StderrReader {
    pub(super) fn new(
        end: ReadEnd,
        lines: Lines,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        end.register(registry, token)?;
        Ok(Self {
            end: Some(end),
            readable: true,
            buffer: vec![0; 16 << 10].into(),
            lines,
        })
    }

    /// Reads what is available; `ready` if the poll reported the stream. Returns whether more can be
    /// read at once.
    pub(super) fn turn(&mut self, ready: bool) -> bool {
        let asked = self.end.as_ref().is_some_and(|end| !end.is_polled());
        self.readable |= ready || asked;
        self.readable = self.readable && self.take(BUDGET_BYTES);
        self.readable
    }

    /// Reads the rest and ends the last line.
    pub(super) fn finish(&mut self) {
        self.take(LAST_BYTES);
        self.end = None;
        self.lines.end();
    }

    fn take(&mut self, budget: usize) -> bool {
        let mut taken = 0;
        while taken < budget {
            let Some(end) = &mut self.end else {
                return false;
            };
            match end.read(&mut self.buffer) {
                Ok(0) => {
                    self.end = None;
                    self.lines.end();
                }
                Ok(n) => {
                    taken += n;
                    self.lines.push(&self.buffer[..n]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => self.end = None,
            }
        }
        true
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::File;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Something that a child left behind may write to its stderr for ever.
    #[test]
    fn a_stream_without_end_is_read_for_a_while_only() {
        let read = Arc::<AtomicUsize>::default();
        let counts = read.clone();
        let mut drain = StderrReader {
            end: Some(ReadEnd::own(File::open("/dev/zero").unwrap()).unwrap()),
            readable: true,
            buffer: vec![0; 16 << 10].into(),
            lines: Lines::new(Box::new(move |line| {
                counts.fetch_add(line.len(), Ordering::Relaxed);
            })),
        };
        assert!(drain.turn(true), "there is more");
        assert_eq!(read.swap(0, Ordering::Relaxed), BUDGET_BYTES);
        drain.finish();
        assert_eq!(read.load(Ordering::Relaxed), LAST_BYTES);
    }
}
