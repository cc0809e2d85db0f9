//! The fallback for streams that cannot be polled: regular files, terminals, other platforms.
//!
//! One thread per end moves bytes between the blocking descriptor and a short queue; the loop reads and
//! writes that queue like a pipe. At most [`CHUNKS`] chunks of [`CHUNK_BYTES`] wait on each side, so a
//! slow end slows the other one down instead of filling the memory.
//!
//! A thread in a blocking read cannot be stopped: it ends when the descriptor ends, when more bytes
//! arrive, or with the process.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};

use super::wake::LoopWake;
use crate::connection::Wake;
use crate::sync::lock;

/// Maximum number of chunks in a queue.
const CHUNKS: usize = 4;
/// Longest chunk, in bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// Chunks that a thread has read, for the loop.
#[derive(Debug)]
pub(super) struct ThreadReader {
    chunks: Receiver<io::Result<Vec<u8>>>,
    current: Vec<u8>,
    taken: usize,
}

impl ThreadReader {
    /// Starts the thread that reads `source` to its end.
    pub(super) fn spawn(
        mut source: impl Read + Send + 'static,
        wake: Arc<LoopWake>,
    ) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(CHUNKS);
        spawn("mcpbolt-read", move || {
            let mut buffer = vec![0; CHUNK_BYTES];
            loop {
                let chunk = match source.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => Ok(buffer[..n].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = chunk.is_err();
                if sender.send(chunk).is_err() {
                    return;
                }
                wake.wake();
                if failed {
                    break;
                }
            }
            drop(sender);
            wake.wake();
        })?;
        Ok(Self {
            chunks,
            current: Vec::new(),
            taken: 0,
        })
    }

    /// Reads like a non-blocking read; `Ok(0)` is the end.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.current.len() {
            self.taken = 0;
            self.current.clear();
            self.current = match self.chunks.try_recv() {
                Ok(chunk) => chunk?,
                Err(TryRecvError::Empty) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(TryRecvError::Disconnected) => return Ok(0),
            };
        }
        let rest = &self.current[self.taken..];
        let n = rest.len().min(into.len());
        into[..n].copy_from_slice(&rest[..n]);
        self.taken += n;
        Ok(n)
    }
}

/// Passes the loop's output to a thread that writes it.
#[derive(Debug)]
pub(super) struct ThreadWriter {
    chunks: SyncSender<Vec<u8>>,
    state: Arc<WriterState>,
}

#[derive(Debug, Default)]
struct WriterState {
    /// Chunks that are accepted but not written yet.
    waiting: AtomicUsize,
    failed: Mutex<Option<io::ErrorKind>>,
}

impl ThreadWriter {
    /// Starts the thread that writes to `sink`.
    pub(super) fn spawn(
        mut sink: impl Write + Send + 'static,
        wake: Arc<LoopWake>,
    ) -> io::Result<Self> {
        let (chunks, queue) = sync_channel::<Vec<u8>>(CHUNKS);
        let state = Arc::new(WriterState::default());
        let shared = state.clone();
        spawn("mcpbolt-write", move || {
            while let Ok(chunk) = queue.recv() {
                let outcome = sink.write_all(&chunk).and_then(|()| sink.flush());
                if let Err(error) = &outcome {
                    *lock(&shared.failed) = Some(error.kind());
                }
                shared.waiting.fetch_sub(1, Ordering::Release);
                wake.wake();
                if outcome.is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { chunks, state })
    }

    /// Writes like a non-blocking write.
    pub(super) fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let n = from.len().min(CHUNK_BYTES);
        self.state.waiting.fetch_add(1, Ordering::Relaxed);
        let refused = match self.chunks.try_send(from[..n].to_vec()) {
            Ok(()) => return Ok(n),
            Err(TrySendError::Full(_)) => io::ErrorKind::WouldBlock,
            Err(TrySendError::Disconnected(_)) => self.failure(),
        };
        self.state.waiting.fetch_sub(1, Ordering::Relaxed);
        Err(refused.into())
    }

    /// Chunks that are accepted but not written yet.
    pub(super) fn waiting(&self) -> usize {
        self.state.waiting.load(Ordering::Acquire)
    }

    /// Whether all accepted bytes have been written to the descriptor.
    ///
    /// # Errors
    /// The failure that ended the thread.
    pub(super) fn is_flushed(&self) -> io::Result<bool> {
        let waiting = self.waiting();
        match *lock(&self.state.failed) {
            Some(kind) => Err(kind.into()),
            None => Ok(waiting == 0),
        }
    }

    fn failure(&self) -> io::ErrorKind {
        lock(&self.state.failed).unwrap_or(io::ErrorKind::BrokenPipe)
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(128 << 10)
        .spawn(run)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    fn wake() -> (mio::Poll, Arc<LoopWake>) {
        let poll = mio::Poll::new().unwrap();
        let wake = LoopWake::new(poll.registry(), mio::Token(0)).unwrap();
        (poll, wake)
    }

    /// Counts the bytes that are read from it; has no end.
    struct Endless(Arc<AtomicUsize>);

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.fetch_add(into.len(), Ordering::SeqCst);
            Ok(into.len())
        }
    }

    /// Writes nothing until the sender is gone.
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(from.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_slow_end_slows_the_other_one_down() {
        let (_poll, wake) = wake();
        let read = Arc::<AtomicUsize>::default();
        let reader = ThreadReader::spawn(Endless(read.clone()), wake.clone()).unwrap();
        // One more chunk is in the hands of the thread.
        let most = (CHUNKS + 1) * CHUNK_BYTES;
        while read.load(Ordering::SeqCst) < most {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(read.load(Ordering::SeqCst), most);
        drop(reader);

        let (release, stuck) = channel();
        let mut writer = ThreadWriter::spawn(Stuck(stuck), wake).unwrap();
        let all = vec![b'x'; 10 * most];
        let mut written = 0;
        while let Ok(n) = writer.write(&all) {
            written += n;
            assert!(written <= most, "{written}");
        }
        assert!(written >= CHUNKS * CHUNK_BYTES, "{written}");
        drop(release);
    }
}
