//! Connections of fronts that have been succeeded, whose servers have asked clients something in states: only the process that has given
//! a state may accept it, as a command that signs states with a key of its own (R-MRT-06).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::lane::Lane;
use super::parts::Parts;
use super::route::Route;
use super::shared::Shared;
use super::unless::unless;
use crate::correlate::CancelToken;
use crate::handler::driven::drive;
use crate::json::reader;
use crate::sync::lock;

/// The connections on which states were given to clients: those of a front, and of the fronts that it succeeds.
#[derive(Default)]
pub(super) struct Kept {
    lanes: Mutex<Vec<Weak<Lane>>>,
    /// The fronts that are not hosted any more, the oldest first.
    retired: Mutex<VecDeque<Retired>>,
}

struct Retired {
    /// The parts of the front, one for each of its servers.
    parts: Vec<Weak<Parts>>,
    /// Cancelled when the connections of the front are kept no longer.
    ends: CancelToken,
}

impl Retired {
    fn has(&self, parts: &Arc<Parts>) -> bool {
        self.parts
            .iter()
            .any(|own| own.as_ptr() == Arc::as_ptr(parts))
    }
}

impl Kept {
    /// Notes the state that the answer to a call has for the client, if there is one.
    pub fn note(&self, lane: &Arc<Lane>, result: &str, call: &Route) {
        if !reader::may_have(result, "requestState") {
            return;
        }
        let kind = reader::find(result, "resultType").and_then(reader::as_str);
        if kind.as_deref() != Some("input_required") {
            return;
        }
        let state = reader::find(result, "requestState").and_then(reader::as_str);
        let Some(state) = state else { return };
        lane.given.note(&state, call);
        let mut lanes = lock(&self.lanes);
        lanes.retain(|one| one.strong_count() > 0);
        if !lanes.iter().any(|one| one.as_ptr() == Arc::as_ptr(lane)) {
            lanes.push(Arc::downgrade(lane));
        }
        drop(lanes);
        // The front may have been succeeded while the server was at work.
        let ends = {
            let retired = lock(&self.retired);
            let own = retired.iter().find(|front| front.has(&lane.parts));
            own.map(|front| front.ends.clone())
        };
        if let (Some(patience), Some(ends)) = (lane.parts.retired.get(), ends) {
            keep(lane.clone(), *patience, &ends);
        }
    }

    /// The connection of another front than this on which the client was given this state in the same call.
    pub fn find(&self, state: &str, call: &Route, front: &Shared) -> Option<Arc<Lane>> {
        let mut old = self.lanes().into_iter();
        old.find(|lane| {
            let mut own = front.members.iter();
            let is_own = own.any(|member| Arc::ptr_eq(&member.parts, &lane.parts));
            !is_own && lane.is_open() && lane.given.has(state, call)
        })
    }

    /// The connections that still exist. Whoever drops the last reference to one closes it, so that must not happen under the lock.
    fn lanes(&self) -> Vec<Arc<Lane>> {
        lock(&self.lanes).iter().filter_map(Weak::upgrade).collect()
    }

    /// A front with a successor is not hosted any more: its connections stay open that long, and those of the eight last fronts.
    pub fn retire<'a>(
        &self,
        front: impl Iterator<Item = &'a Arc<Parts>> + Clone,
        patience: Duration,
    ) {
        let ends = CancelToken::new();
        let oldest = {
            let mut retired = lock(&self.retired);
            retired.push_back(Retired {
                parts: front.clone().map(Arc::downgrade).collect(),
                ends: ends.clone(),
            });
            let is_full = retired.len() > super::question::MAX_RETIRED;
            is_full.then(|| retired.pop_front()).flatten()
        };
        if let Some(oldest) = oldest {
            oldest.ends.cancel(None);
        }
        for parts in front {
            let patience = *parts.retired.get_or_init(|| patience);
            let own = self.lanes().into_iter();
            let own = own.filter(|it| Arc::ptr_eq(&it.parts, parts));
            own.for_each(|lane| keep(lane, patience, &ends));
        }
    }

    /// Keeps no connection any longer.
    pub fn clear(&self) {
        let retired = std::mem::take(&mut *lock(&self.retired));
        for front in retired {
            front.ends.cancel(None);
        }
    }
}

/// Keeps a connection for a while.
fn keep(lane: Arc<Lane>, patience: Duration, ends: &CancelToken) {
    let Some(far) = lane.ready() else { return };
    let ends = ends.cancelled();
    drive(Box::pin(async move {
        unless(far.handle().sleep(patience), ends).await;
        // Held until then, so that the connection is not let go because nobody uses it.
        drop((far, lane));
    }));
}
