//! The two ends of a byte stream, read and written without blocking: by readiness where the system has it,
//! else by a thread.

use std::io::{self, IoSlice};
use std::sync::Arc;

use mio::{Interest, Registry, Token};

use super::blocking::{ThreadReader, ThreadWriter};
use super::platform::Descriptor;
use super::wake::LoopWake;

/// How the bytes of one end are read or written.
#[derive(Debug)]
pub(super) enum Way<T> {
    /// The poll reports when the descriptor is ready.
    Polled(Descriptor),
    /// A thread that blocks instead of the loop.
    Thread(T),
}

impl<T> Way<T> {
    fn polled(&self) -> Option<&Descriptor> {
        match self {
            Self::Polled(descriptor) => Some(descriptor),
            Self::Thread(_) => None,
        }
    }

    /// Whether the poll reports readiness; the end of a thread must be checked instead.
    fn is_polled(&self) -> bool {
        self.polled().is_some()
    }

    fn register(&self, registry: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        let polled = self.polled();
        polled.map_or(Ok(()), |fd| fd.register(registry, token, interest))
    }

    /// The open file, and with it the registration, may outlive this end.
    fn deregister(&self, registry: &Registry) {
        if let Some(descriptor) = self.polled() {
            descriptor.deregister(registry);
        }
    }
}

/// The end of a byte stream that this process reads.
#[derive(Debug)]
pub struct ReadEnd(pub(super) Way<ThreadReader>);

impl ReadEnd {
    /// Reads `source` on a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn blocking(
        source: impl io::Read + Send + 'static,
        wake: &Arc<LoopWake>,
    ) -> io::Result<Self> {
        Ok(Self(Way::Thread(ThreadReader::spawn(
            source,
            wake.clone(),
        )?)))
    }

    pub(super) fn is_polled(&self) -> bool {
        self.0.is_polled()
    }

    pub(super) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        self.0.register(registry, token, Interest::READABLE)
    }

    pub(super) fn deregister(&self, registry: &Registry) {
        self.0.deregister(registry);
    }

    /// Reads once without blocking; `Ok(0)` is the end of the stream.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Way::Polled(descriptor) => descriptor.read(into),
            Way::Thread(reader) => reader.read(into),
        }
    }
}

/// The end of a byte stream that this process writes.
#[derive(Debug)]
pub struct WriteEnd(pub(super) Way<ThreadWriter>);

impl WriteEnd {
    /// Writes to `sink` on a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn blocking(
        sink: impl io::Write + Send + 'static,
        wake: &Arc<LoopWake>,
    ) -> io::Result<Self> {
        Ok(Self(Way::Thread(ThreadWriter::spawn(sink, wake.clone())?)))
    }

    pub(super) fn is_polled(&self) -> bool {
        self.0.is_polled()
    }

    pub(super) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        self.0.register(registry, token, self.at_rest())
    }

    pub(super) fn deregister(&self, registry: &Registry) {
        self.0.deregister(registry);
    }

    /// Requests an event when there is room to write or, if not `blocked`, only when the peer has gone.
    pub(super) fn await_room(
        &self,
        registry: &Registry,
        token: Token,
        blocked: bool,
    ) -> io::Result<()> {
        match (&self.0, self.at_rest()) {
            (Way::Polled(descriptor), at_rest) if at_rest != Interest::WRITABLE => {
                let interest = if blocked { Interest::WRITABLE } else { at_rest };
                descriptor.reregister(registry, token, interest)
            }
            _ => Ok(()),
        }
    }

    fn at_rest(&self) -> Interest {
        let polled = self.0.polled();
        polled.map_or(Interest::WRITABLE, Descriptor::interest_at_rest)
    }

    /// Writes once without blocking.
    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.0 {
            Way::Polled(descriptor) => descriptor.write(slices),
            Way::Thread(writer) => slices.first().map_or(Ok(0), |first| writer.write(first)),
        }
    }

    /// Pieces of output that are accepted and have not left this process yet.
    pub(super) fn waiting(&self) -> usize {
        match &self.0 {
            Way::Polled(_) => 0,
            Way::Thread(writer) => writer.waiting(),
        }
    }

    /// Whether all accepted bytes have left this process.
    ///
    /// # Errors
    /// The failure that stopped the writing.
    pub(super) fn is_flushed(&self) -> io::Result<bool> {
        match &self.0 {
            Way::Polled(_) => Ok(true),
            Way::Thread(writer) => writer.is_flushed(),
        }
    }
}
