//! Connections of fronts that have been succeeded, whose servers have asked clients something in states: only the process that has given
//! a state may accept it, as a command that signs states with a key of its own (R-MRT-06).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::lane::Lane;
use super::parts::Parts;
use super::unless::unless;
use crate::connection::Principal;
use crate::correlate::CancelToken;
use crate::handler::driven::drive;
use crate::json::reader;
use crate::sync::lock;

/// The connections on which states were given to clients: those of a front, and of the fronts that it succeeds.
#[derive(Default)]
pub(super) struct Kept {
    lanes: Mutex<Vec<Weak<Lane>>>,
    /// Cancelled when connections of fronts that are not hosted any more are kept no longer, the oldest first.
    retired: Mutex<VecDeque<CancelToken>>,
}

impl Kept {
    /// Notes the state that an answer of the server has for the client, if there is one.
    pub fn note(&self, lane: &Arc<Lane>, result: &str, who: &Option<Principal>) {
        if !reader::may_have(result, "requestState") {
            return;
        }
        let kind = reader::find(result, "resultType").and_then(reader::as_str);
        if kind.as_deref() != Some("input_required") {
            return;
        }
        let state = reader::find(result, "requestState").and_then(reader::as_str);
        let Some(state) = state else { return };
        lane.given.note(&state, who);
        let mut lanes = lock(&self.lanes);
        lanes.retain(|one| one.strong_count() > 0);
        if !lanes.iter().any(|one| one.as_ptr() == Arc::as_ptr(lane)) {
            lanes.push(Arc::downgrade(lane));
        }
        drop(lanes);
        // The front may have been succeeded while the server was at work.
        let ends = lock(&self.retired).back().cloned();
        if let (Some(patience), Some(ends)) = (lane.parts.retired.get(), ends) {
            keep(lane.clone(), *patience, &ends);
        }
    }

    /// The connection of a front that has been succeeded on which the client was given this state.
    pub fn find(&self, state: &str, who: &Option<Principal>) -> Option<Arc<Lane>> {
        let all = lock(&self.lanes);
        let mut old = all.iter().filter_map(Weak::upgrade);
        old.find(|lane| {
            let is_retired = lane.parts.retired.get().is_some();
            is_retired && lane.is_open() && lane.given.has(state, who)
        })
    }

    /// A front with a successor is not hosted any more: its connections stay open that long, and those of the eight last fronts.
    pub fn retire<'a>(&self, front: impl Iterator<Item = &'a Arc<Parts>>, patience: Duration) {
        let ends = CancelToken::new();
        let oldest = {
            let mut retired = lock(&self.retired);
            retired.push_back(ends.clone());
            let is_full = retired.len() > super::question::MAX_RETIRED;
            is_full.then(|| retired.pop_front()).flatten()
        };
        if let Some(oldest) = oldest {
            oldest.cancel(None);
        }
        for parts in front {
            let patience = *parts.retired.get_or_init(|| patience);
            let lanes: Vec<_> = lock(&self.lanes).iter().filter_map(Weak::upgrade).collect();
            let own = lanes.into_iter().filter(|it| Arc::ptr_eq(&it.parts, parts));
            own.for_each(|lane| keep(lane, patience, &ends));
        }
    }

    /// Keeps no connection any longer.
    pub fn clear(&self) {
        let ends = std::mem::take(&mut *lock(&self.retired));
        for ends in ends {
            ends.cancel(None);
        }
    }
}

/// Keeps a connection for a while.
fn keep(lane: Arc<Lane>, patience: Duration, ends: &CancelToken) {
    let Some(far) = lane.ready() else { return };
    let (far, ends) = (far.handle().clone(), ends.cancelled());
    drive(Box::pin(async move {
        unless(far.sleep(patience), ends).await;
        drop(lane);
    }));
}
