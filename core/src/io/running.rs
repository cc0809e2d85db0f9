//! Child processes whose connections are driven by threads of their own.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::child::{Child, Exit};
use super::driver::Stop;
use super::ended::Driven;
use super::hosted::Hosted;
use super::trace::traced;
use crate::connection::{Channel, Config, Connection, Framing, Handle, Host, NetworkTransport};

/// A child process whose connection is driven by a thread of its own.
///
/// Dropping it shuts the child down in the background.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    id: u32,
    stop: Stop,
    thread: Option<JoinHandle<io::Result<Exit>>>,
}

impl Child {
    /// Drives a connection to the child on a new thread.
    ///
    /// # Errors
    /// When the thread cannot be started, or the trace that [`TRACE_VARIABLE`](super::TRACE_VARIABLE)
    /// asks for cannot be written. The child is then killed.
    pub fn connect<H>(
        self,
        config: Arc<Config>,
        host: impl FnOnce(&Handle) -> H,
    ) -> io::Result<Running>
    where
        H: Host + Send + 'static,
    {
        let mut connection = Connection::new(traced(config)?, Instant::now());
        connection.set_channel(|| Channel::new(NetworkTransport::Pipe));
        connection.set_wake(self.wake().clone());
        let handle = connection.handle();
        let mut machine = Hosted::new(connection, Framing::Line, host(&handle));
        let (id, stop) = (self.id(), self.stop());
        let driven = Driven::begin();
        let drive = move || {
            let exit = self.run(&mut machine);
            drop((machine, driven));
            exit
        };
        let thread = thread::Builder::new().name("mcpbolt-child".to_owned());
        Ok(Running {
            handle,
            id,
            stop,
            thread: Some(thread.spawn(drive)?),
        })
    }
}

impl Running {
    /// The connection.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The process id of the child, which is also its process group.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Shuts the child down and waits until it has ended; blocks for at most the waits of its command.
    ///
    /// # Errors
    /// When its exit status was lost.
    pub fn shutdown(mut self) -> io::Result<Exit> {
        self.stop.stop();
        self.join()
    }

    /// Waits until the child has ended.
    ///
    /// # Errors
    /// When its exit status was lost.
    pub fn wait(mut self) -> io::Result<Exit> {
        self.join()
    }

    fn join(&mut self) -> io::Result<Exit> {
        let lost = || io::Error::other("the loop's thread panicked");
        let thread = self.thread.take().ok_or_else(lost)?;
        thread.join().map_err(|_| lost())?
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
