//! Cancels across the streams of one session.
//!
//! Where a session has many streams, as over HTTP, a cancel comes on another stream than its
//! request. It applies when exactly one stream has that id in flight; when several have, as with
//! clients that number every request alike, nobody can tell which was meant, and none ends.
//! One that overtook its request is kept for a moment, unless the session knows the id: then it
//! came too late, and a later request of the same id has nothing to do with it.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use super::core::Core;
use super::host::{CallKey, Host, Stray};
use super::stream::Exchange;
use super::streams::Streams;
use crate::limits::{EARLY_CANCEL, MAX_EARLY_CANCELS, MAX_KNOWN_IDS, later};
use crate::mcp::code::REQUEST_CANCELLED;
use crate::message::{OwnedId, RequestId};

/// A cancel whose request is not in flight on its own stream.
#[derive(Debug)]
pub(super) struct Elsewhere {
    pub id: OwnedId,
    pub reason: Option<Box<str>>,
}

/// What a session remembers of ids, as seeded hashes: of a foreseeable size, whatever they are.
#[derive(Debug, Default)]
pub(super) struct Session {
    hasher: RandomState,
    /// Requests that came, the last ones.
    known: VecDeque<u64>,
    /// Cancels that came before their requests, and how long each is kept.
    early: VecDeque<(Instant, u64)>,
}

impl Session {
    /// A request came. Whether it was cancelled before.
    pub fn arrives(&mut self, id: RequestId<'_>, now: Instant) -> bool {
        let hash = self.hasher.hash_one(id);
        if self.known.len() >= MAX_KNOWN_IDS {
            self.known.pop_front();
        }
        self.known.push_back(hash);
        self.forget(now);
        let found = self.early.iter().position(|(_, early)| *early == hash);
        found.and_then(|at| self.early.remove(at)).is_some()
    }

    /// A cancel came of an id that no stream has in flight.
    fn cancels(&mut self, id: RequestId<'_>, now: Instant) {
        let hash = self.hasher.hash_one(id);
        self.forget(now);
        if !self.known.contains(&hash) && self.early.len() < MAX_EARLY_CANCELS {
            self.early.push_back((later(now, EARLY_CANCEL), hash));
        }
    }

    fn forget(&mut self, now: Instant) {
        while self.early.front().is_some_and(|(until, _)| *until <= now) {
            self.early.pop_front();
        }
    }
}

impl Core {
    /// Looks on all streams for the request that a cancel names.
    pub(super) fn cancel_elsewhere(
        &mut self,
        streams: &mut Streams,
        Elsewhere { id, reason }: Elsewhere,
        now: Instant,
        host: &mut dyn Host,
    ) {
        let id = id.as_ref();
        let in_flight = streams.iter().filter_map(|(id_of, stream)| {
            let incoming = stream.exchange.incoming.find(&id)?;
            Some(CallKey {
                stream: id_of,
                incoming,
            })
        });
        let mut in_flight = in_flight.fuse();
        match (in_flight.next(), in_flight.next()) {
            (Some(key), None) => {
                drop(in_flight);
                let Some(exchange) = streams.exchange(key.stream) else {
                    return;
                };
                let reason = reason.as_deref();
                self.cancel_incoming(exchange, key, reason, reason, host);
                self.answer_cancelled(exchange, id);
            }
            (None, _) => {
                if let Some(session) = &mut self.session {
                    session.cancels(id, now);
                }
            }
            (Some(_), Some(_)) => self.stray(Stray::Cancel, b"", host),
        }
    }

    /// The one answer to a cancelled request, for peers that expect it (R-ERR-27).
    pub(super) fn answer_cancelled(&self, exchange: &mut Exchange, id: RequestId<'_>) {
        let profile = self.handle.revision().map(|_| self.config.profile);
        let own = profile.is_some_and(|profile| profile.overlay().answers_cancelled);
        if own || self.config.answer_cancelled {
            self.refuse(exchange, Some(id), REQUEST_CANCELLED, "Request cancelled");
        }
    }
}
