//! Changes of lists and resources, told to the clients of all processes of a server.
//!
//! ```text
//!   change ─▶ clients of this process
//!          ╰▶ feed ─▶ log of the store ─▶ feeds of the other processes ─▶ their clients
//! ```
//!
//! Changes that come while an entry is written go into the next one together. What may have been missed is told as a
//! change of everything: clients then look again.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use super::following::Following;
use super::shared_sessions::SharedSessions;
use crate::server::{ChangeFeed, Changes, Hosting};
use crate::store::{HolderId, LogBounds, SealedStore, SharedStore, StoreError, StoreFault};
use crate::sync::lock;

const CHANGES: &str = "changes";
/// What the log keeps. A process that is behind by more tells its clients that everything has changed; so it does when the log
/// is over.
const BOUNDS: LogBounds = LogBounds {
    entries: 1_000,
    bytes: 4 << 20,
    keep: Duration::from_secs(30 * 24 * 3600),
};
/// How often a process that hears nothing looks at the log: its connection may be dead.
const LOOK: Duration = Duration::from_secs(30);
/// The wait between two attempts while the store is away.
const PAUSE: Duration = Duration::from_secs(1);
const PAGE: usize = 64;

/// The sharing of one endpoint's changes, which begins when it listens, or with the first request that is brought to it. Of
/// several endpoints of one server, one shares for all; another one goes on when that one is gone.
pub struct SharedChanges {
    shared: SharedSessions,
    feed: Mutex<Option<ChangeFeed>>,
    following: OnceLock<Option<Following>>,
}

/// An entry of the log.
#[derive(Serialize, Deserialize)]
struct Told {
    /// The process that tells it.
    by: [u8; 16],
    changes: Changes,
}

impl SharedChanges {
    /// `None` if the server tells of no changes.
    pub fn new(shared: &SharedSessions, hosting: &dyn Hosting) -> Option<Self> {
        Some(Self {
            shared: shared.clone(),
            feed: Mutex::new(Some(hosting.change_feed()?)),
            following: OnceLock::new(),
        })
    }

    /// Begins in the context of the current runtime, unless it has begun.
    pub fn begin(&self) {
        self.following.get_or_init(|| {
            let feed = lock(&self.feed).take()?;
            let process = Process {
                store: self.shared.sealed_store(),
                own: HolderId::random()?,
                feed,
            };
            Some(Following::begin(process.share()))
        });
    }
}

struct Process {
    store: SealedStore,
    own: HolderId,
    feed: ChangeFeed,
}

impl Process {
    async fn share(self) {
        let _turn = self.feed.turn().await;
        tokio::join!(self.tell(), self.follow());
    }

    /// Tells the other processes of changes.
    async fn tell(&self) {
        loop {
            let changes = self.feed.next().await;
            let told = Told {
                by: *self.own.as_bytes(),
                changes,
            };
            // Cannot fail: there are neither maps nor numbers in it that JSON lacks.
            let entry = serde_json::to_vec(&told).unwrap_or_default();
            if let Err(why) = self.store.append(CHANGES, &entry, BOUNDS, 0).await {
                event!(warn, %why, "other processes are not told of changes while the store is away");
                let _ = why;
                self.feed.put_back(told.changes);
                sleep(PAUSE).await;
            }
        }
    }

    /// Tells the clients of this process of changes at the others.
    async fn follow(&self) {
        let mut after = None;
        while let Err(why) = self.follow_from(&mut after).await {
            event!(warn, %why, "changes at other processes are not noticed while the store is away");
            let _ = why;
            sleep(PAUSE).await;
        }
    }

    async fn follow_from(&self, after: &mut Option<u64>) -> Result<(), StoreError> {
        let mut hints = self.store.subscribe(CHANGES).await?;
        loop {
            let Some(last) = *after else {
                *after = Some(self.store.read(CHANGES, None, 0).await?.last);
                continue;
            };
            let page = match self.store.read(CHANGES, Some(last), PAGE).await {
                // Another process seals with a key that this one does not have yet, or not any more.
                Err(why) if why.fault() == StoreFault::Unreadable => {
                    let last = self.store.read(CHANGES, None, 0).await?.last;
                    *after = Some(last);
                    self.feed.tell(&Changes::of_everything());
                    continue;
                }
                page => page?,
            };
            // A log that nobody has written to yet has no gap.
            if page.has_gap && last > 0 {
                self.feed.tell(&Changes::of_everything());
            }
            for entry in &page.entries {
                // A later version may tell of more than this one knows.
                match serde_json::from_slice::<Told>(&entry.bytes) {
                    Ok(told) if told.by == *self.own.as_bytes() => {}
                    Ok(told) => self.feed.tell(&told.changes),
                    Err(_) => self.feed.tell(&Changes::of_everything()),
                }
            }
            *after = Some(page.entries.last().map_or(page.last, |entry| entry.id));
            if page.entries.is_empty() {
                let _ = timeout(LOOK, hints.hinted()).await;
            }
        }
    }
}
