//! Connections that clients share, and that none of them needs, are closed after a while.

use std::sync::Arc;

use super::far::Far;
use super::lane::Lane;
use crate::handler::driven::drive;

/// Closes a connection that clients share when neither a session nor a request has needed it for as long as its server allows: not before
/// that time, and not later than twice that time. The next request opens another one.
pub(super) fn watch(lane: &Arc<Lane>, far: &Far) {
    let time = lane.parts.external.idle_time;
    let Some(time) = time.filter(|_| lane.is_shared()) else {
        return;
    };
    let (lane, far) = (Arc::downgrade(lane), far.handle().clone());
    drive(Box::pin(async move {
        let mut before = None;
        loop {
            far.sleep(time).await;
            let Some(lane) = lane.upgrade().filter(|_| !far.is_closed()) else {
                return;
            };
            let now = lane.unneeded();
            if now.is_some() && now == before {
                lane.let_go();
            }
            before = now;
        }
    }));
}
