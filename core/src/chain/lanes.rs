//! The connections to the server that clients without a connection of their own share: over HTTP, each request of the
//! stateless era may come from anybody.
//!
//! A server of the stateless era gets the capabilities of the client with each request, so one connection serves all. To a
//! server of the handshake era a connection is a client with fixed capabilities, so there is one for each set of
//! capabilities and verified client (R-CHN-09). Where the server may ask a client that nobody verified, a connection
//! carries one call at a time, and none after one that was given up: its questions cannot reach anybody else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::external::Isolation;
use super::far::Far;
use super::lane::{Lane, Near};
use super::lane_key::LaneKey;
use super::parts::Parts;
use super::upstream::host;
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::{Era, Revision};
use crate::sync::lock;

/// The most connections for one call at a time, and the most shared ones before unused ones make room.
const MAX_LANES: usize = 256;

type Idle = HashMap<LaneKey, Vec<Arc<Lane>>>;

#[derive(Default)]
pub(super) struct Lanes {
    shared: Mutex<HashMap<LaneKey, Arc<Lane>>>,
    /// Connections for one call at a time that are not in use, the last used one last. No entry is empty.
    idle: Mutex<Idle>,
    /// How many of those there are.
    exclusive: Mutex<usize>,
    /// Whether none is kept any more.
    is_over: AtomicBool,
}

impl Lanes {
    /// The connection that the clients of `key` share.
    ///
    /// # Errors
    /// [`RequestError::Overloaded`] when there are too many.
    pub fn shared(&self, parts: &Arc<Parts>, key: LaneKey) -> Result<Arc<Lane>, RequestError> {
        let mut all = lock(&self.shared);
        let external = &parts.external;
        let is_for_any = external.isolation != Isolation::Principal && !key.is_lent;
        let found = match parts.era() {
            Some(Era::Stateless) if is_for_any => all.values().next(),
            _ => all.get(&key),
        };
        if let Some(lane) = found {
            return Ok(lane.clone());
        }
        if all.len() >= MAX_LANES {
            let unused = |(_, lane): &(&LaneKey, &Arc<Lane>)| Arc::strong_count(lane) == 1;
            let unused = all.iter().find(unused).map(|(key, _)| key.clone());
            match unused {
                Some(unused) => drop(all.remove(&unused)),
                None if all.len() >= external.max_connections => {
                    return Err(RequestError::Overloaded);
                }
                None => {}
            }
        }
        let lane = Lane::new(parts.clone(), near(&key), host);
        all.insert(key, lane.clone());
        Ok(lane)
    }

    /// The connection for sessions of the handshake era that need none of their own ([`Parts::lends`]).
    ///
    /// # Errors
    /// As [`shared`](Self::shared).
    pub fn lent(&self, parts: &Arc<Parts>) -> Result<Arc<Lane>, RequestError> {
        self.shared(parts, LaneKey::lent())
    }

    /// Closes the connections that are not in use, and others when they are not used any more.
    pub fn clear(&self) {
        self.is_over.store(true, Ordering::Release);
        let shared = std::mem::take(&mut *lock(&self.shared));
        let idle = std::mem::take(&mut *lock(&self.idle));
        *lock(&self.exclusive) -= idle.values().map(Vec::len).sum::<usize>();
        drop((shared, idle));
    }

    /// A connection for one call, until the guard is dropped.
    ///
    /// # Errors
    /// [`RequestError::Overloaded`] when there are too many.
    pub fn exclusive(
        self: &Arc<Self>,
        parts: &Arc<Parts>,
        key: LaneKey,
    ) -> Result<Exclusive, RequestError> {
        let lanes = self;
        let idle = take(&mut lock(&lanes.idle), &key);
        let lane = match idle {
            Some(lane) => lane,
            None => {
                let mut count = lock(&lanes.exclusive);
                if *count >= MAX_LANES {
                    // One that waits for other clients makes room.
                    let mut idle = lock(&lanes.idle);
                    let other = idle.keys().next().cloned();
                    let gone = other.and_then(|other| take(&mut idle, &other));
                    drop(gone.ok_or(RequestError::Overloaded)?);
                    *count -= 1;
                }
                *count += 1;
                Lane::new(parts.clone(), near(&key), host)
            }
        };
        Ok(Exclusive {
            lanes: self.clone(),
            key,
            lane: Some(lane),
        })
    }
}

/// Takes a connection out of use, and the entry that becomes empty.
fn take(idle: &mut Idle, key: &LaneKey) -> Option<Arc<Lane>> {
    let lanes = idle.get_mut(key)?;
    let lane = lanes.pop();
    if lanes.is_empty() {
        idle.remove(key);
    }
    lane
}

fn near(key: &LaneKey) -> Near {
    Near {
        listens: true,
        handle: None,
        revision: Revision::NEWEST,
        capabilities: key.capabilities.clone(),
        implementation: None,
        shared_by: Some(key.clone()),
    }
}

/// Whether a server may ask a client with these capabilities anything.
pub(super) fn may_be_asked(capabilities: &str) -> bool {
    reader::members(capabilities).next().is_some()
}

/// A connection that carries one call.
pub(super) struct Exclusive {
    lanes: Arc<Lanes>,
    key: LaneKey,
    lane: Option<Arc<Lane>>,
}

impl Exclusive {
    pub fn lane(&self) -> Option<&Arc<Lane>> {
        self.lane.as_ref()
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        let Some(lane) = self.lane.take() else { return };
        let lanes = &self.lanes;
        // The server may have asked before it heard that the call has ended, and the next call may be of another client.
        let is_clean = |far: Far| !far.routes().has_given_up();
        let is_over = lanes.is_over.load(Ordering::Acquire);
        match !is_over && lane.ready().is_some_and(is_clean) {
            true => lock(&lanes.idle)
                .entry(std::mem::take(&mut self.key))
                .or_default()
                .push(lane),
            false => *lock(&lanes.exclusive) -= 1,
        }
    }
}
