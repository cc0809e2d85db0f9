//! Drives a server's loop on the workers that run its handlers.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::hosted::Hosted;
use super::stdio::{Next, Report, Stdio, Vigil};
use super::wake::WakeUps;
use super::workers::{Lead, Workers};
use crate::connection::{Connection, Framing, Host, StreamId};

/// The loop, with all that the leader needs.
struct Shift<H> {
    vigil: Vigil,
    connection: Connection,
    stream: StreamId,
    host: H,
    over: Sender<io::Result<Report>>,
}

/// The loop; `None` once it is over. Only the leader locks it, so the lock is never contended.
struct Crew<H>(Mutex<Option<Shift<H>>>);

impl Stdio {
    /// Lets `workers` drive a connection, and waits until the wire ends. Jobs that the host spawns on
    /// them cost no wake-up of another thread while they are quick.
    ///
    /// A pool drives only one connection in its life.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when no thread can be started.
    pub fn drive_by<H: Host + Send + 'static>(
        self,
        workers: &Workers,
        mut connection: Connection,
        host: H,
    ) -> io::Result<Report> {
        connection.set_wake(self.wake().clone());
        self.watched(|vigil| {
            let stream = connection.open_stream(Framing::Detect);
            let (over, report) = channel();
            let shift = Shift {
                vigil,
                connection,
                stream,
                host,
                over,
            };
            workers.drive(Arc::new(Crew(Mutex::new(Some(shift)))))?;
            let lost = |_| Err(io::Error::other("the loop panicked"));
            report.recv().unwrap_or_else(lost)
        })
    }
}

impl<H: Host + Send> Lead for Crew<H> {
    fn lead(&self, wakes: WakeUps, is_wanted: &dyn Fn() -> bool) -> bool {
        wakes.iter().for_each(|wake| wake.wake());
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(shift) = slot.as_mut() else {
            return true;
        };
        let outcome = match catch_unwind(AssertUnwindSafe(|| shift.run(is_wanted))) {
            Ok(Ok(None)) => return false,
            Ok(Ok(Some(report))) => Some(Ok(report)),
            Ok(Err(error)) => Some(Err(error)),
            Err(_) => None,
        };
        let over = slot.take().map(Shift::end);
        if let (Some(over), Some(outcome)) = (over, outcome) {
            // The receiver of the report still exists.
            let _ = over.send(outcome);
        }
        true
    }
}

impl<H: Host> Shift<H> {
    /// Runs turns until the wire ends, or this thread is needed for jobs.
    fn run(&mut self, is_wanted: &dyn Fn() -> bool) -> io::Result<Option<Report>> {
        self.vigil.resume();
        let mut has_looked = false;
        loop {
            let mut machine = Hosted::on(&mut self.connection, self.stream, &mut self.host);
            match self.vigil.step(&mut machine)? {
                Next::Over(report) => return Ok(Some(report)),
                Next::Wait { until, more } => match is_wanted() {
                    // At least one turn waits, so that endless jobs do not starve the wire and the
                    // signals.
                    true if has_looked => return Ok(None),
                    wanted => self.vigil.wait(until, more || wanted)?,
                },
            }
            has_looked = true;
        }
    }

    /// Drops everything but the sender of the report.
    fn end(self) -> Sender<io::Result<Report>> {
        self.over
    }
}
