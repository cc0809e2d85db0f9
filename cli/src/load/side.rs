//! One server under load: the connections to it, what is asked of it, and its processes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result};
use mcpbolt::client::{Client, block_on};
use mcpbolt::mcp::{Revision, Revisions};

use super::listening;
use super::plan::MAX_IN_FLIGHT;
use super::process::Server;
use super::workload::{Failure, Link, Workload};
use crate::session::{FAREWELL, Session, Start};
use crate::shown;

/// How to connect to a server.
pub struct Approach<'a> {
    pub start: &'a Start,
    pub connections: usize,
    pub revision: Option<Revision>,
    /// How long to wait for an answer.
    pub timeout: Duration,
    /// The process of the server, if it is not found by itself.
    pub process: Option<u32>,
}

/// A server with connections to it.
pub struct Side {
    /// The name in reports.
    pub name: String,
    pub server: Server,
    sessions: Mutex<Vec<Session>>,
    clients: Vec<Client>,
    workload: Workload,
    timeout: Duration,
    /// Requests that were given up, and whose answers may come later.
    given_up: AtomicU64,
}

impl Side {
    /// Starts the server if there is a command, connects, and sends one request to see that it is answered.
    pub fn open(approach: &Approach<'_>, workload: Workload) -> Result<Self> {
        let start = approach.start;
        let revisions = approach
            .revision
            .map_or(Revisions::ALL, |revision| [revision].into_iter().collect());
        let open = |_| {
            let client = workload.client(Session::builder()).revisions(revisions);
            Session::open_with(start, client, MAX_IN_FLIGHT)
        };
        let sessions: Vec<_> = (0..approach.connections).map(open).collect::<Result<_>>()?;
        let children = sessions.iter().filter_map(Session::child).collect();
        let processes = match (approach.process, start.address()) {
            (Some(process), _) => vec![process],
            (None, Some(address)) => listening::processes(address),
            (None, None) => children,
        };
        let clients = sessions.iter().map(|session| session.client.clone());
        let side = Self {
            name: start.name(),
            server: Server::new(processes),
            clients: clients.collect(),
            sessions: Mutex::new(sessions),
            workload,
            timeout: approach.timeout,
            given_up: AtomicU64::new(0),
        };
        side.prepare()?;
        Ok(side)
    }

    fn prepare(&self) -> Result<()> {
        let name = &self.name;
        let prepared = block_on(self.workload.prepare(&self.link(0)));
        prepared.with_context(|| format!("trying {name}"))
    }

    fn link(&self, turn: usize) -> Link<'_> {
        Link {
            client: &self.clients[turn],
            timeout: self.timeout,
            given_up: &self.given_up,
        }
    }

    /// Sends the request of this number, and checks its answer. The connections take turns.
    pub async fn one(&self, number: u64) -> Result<(), Failure> {
        let turn = turn(number, self.clients.len(), self.workload.kinds());
        self.workload.one(&self.link(turn), number).await
    }

    /// Messages of the server that were of no use, beyond the late answers that were to be expected: repeated answers,
    /// answers to nothing, progress out of order, messages that are not valid.
    pub fn strays(&self) -> u64 {
        let given_up = self.given_up.load(Relaxed);
        // A server sends answers in order on most carriers: after this one, those before it have arrived.
        for turn in 0..self.clients.len() {
            let link = Link {
                timeout: self.timeout.min(FAREWELL),
                ..self.link(turn)
            };
            let _ = block_on(link.ask("tools/list", None));
        }
        let strays = self
            .clients
            .iter()
            .map(|client| client.handle().stray_count());
        let strays = strays.sum::<u64>().saturating_sub(given_up);
        strays.saturating_sub(self.workload.late_answers(strays))
    }

    /// Looks whether the server is as it was before.
    pub fn settle(&self) -> Result<(), Failure> {
        block_on(self.workload.settle(&self.link(0)))
    }

    /// Ends the started server, or closes the connections.
    pub fn close(mut self) {
        self.clients.clear();
        self.end(|_| true);
    }

    /// Ends the started server while requests are in flight. Connections end with this process.
    pub fn abandon(&self) {
        self.end(|session| session.child().is_some());
    }

    fn end(&self, is_it: fn(&Session) -> bool) {
        let sessions = self
            .sessions
            .lock()
            .map(|mut all| std::mem::take(&mut *all));
        let sessions = sessions.unwrap_or_default().into_iter().filter(is_it);
        if let Some(error) = Session::close_all(sessions) {
            shown::tell(&format!("warning: {}", shown::line(&format!("{error:#}"))));
        }
    }
}

/// The connection of a request, if requests of so many kinds take turns by their numbers. The connections take turns, too,
/// and begin one later whenever both would be where they began, so that each connection carries all kinds.
fn turn(number: u64, connections: usize, kinds: usize) -> usize {
    let (connections, kinds) = (connections.max(1) as u64, kinds.max(1) as u64);
    let period = connections.saturating_mul(kinds / common(connections, kinds));
    let turn = (number % connections + number / period % connections) % connections;
    usize::try_from(turn).unwrap_or_default()
}

/// The greatest common divisor.
fn common(one: u64, other: u64) -> u64 {
    match other {
        0 => one,
        _ => common(other, one % other),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_connection_carries_all_kinds_and_as_many_requests() {
        for (connections, kinds) in [(1, 1), (3, 1), (2, 4), (4, 4), (4, 6), (3, 4), (4, 2)] {
            let count = (connections * kinds * connections) as u64;
            let turns: Vec<_> = (0..count)
                .map(|number| (turn(number, connections, kinds), number % kinds as u64))
                .collect();
            let met: BTreeSet<_> = turns.iter().collect();
            assert_eq!(met.len(), connections * kinds, "{connections} {kinds}");
            for connection in 0..connections {
                let its = turns.iter().filter(|(turn, _)| *turn == connection).count();
                assert_eq!(its, connections * kinds, "{connections} {kinds}");
            }
        }
    }
}
