//! A store whose answers may be lost or late.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcpbolt::limits::Quota;
use mcpbolt::store::{
    Blob, BlobVersion, Bucket, HolderId, Leased, LogBounds, LogPage, SharedStore, StoreError,
    StoreFault, StoreFuture, Subscription, Taken, When,
};
use tokio::sync::Semaphore;

use crate::stores::Store;

/// What becomes of the answer to a verb that was carried out.
pub enum Answer {
    Comes,
    IsLost,
    /// The first semaphore counts answers that wait for the second one.
    Waits(Arc<Semaphore>, Arc<Semaphore>),
}

impl Answer {
    async fn arrive(self) -> Result<(), StoreError> {
        match self {
            Self::Comes => Ok(()),
            Self::IsLost => Err(StoreError::new(StoreFault::Broken, "lost")),
            Self::Waits(waits, goes_on) => {
                waits.add_permits(1);
                goes_on.acquire().await.unwrap().forget();
                Ok(())
            }
        }
    }
}

/// Another store. `answer` tells what becomes of the answer to a verb about the blob of that name: to a write under a condition, or to a
/// read.
pub struct Answering<F> {
    pub store: Store,
    pub answer: F,
}

impl<F> fmt::Debug for Answering<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl<F: Fn(&str, Option<When>) -> Answer + Send + Sync + 'static> SharedStore for Answering<F> {
    fn put<'a>(
        &'a self,
        name: &'a str,
        value: &'a [u8],
        keep: Duration,
        when: When,
    ) -> StoreFuture<'a, Option<BlobVersion>> {
        Box::pin(async move {
            let version = self.store.put(name, value, keep, when).await?;
            (self.answer)(name, Some(when)).arrive().await?;
            Ok(version)
        })
    }

    fn get<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Blob>> {
        Box::pin(async move {
            let blob = self.store.get(name).await?;
            (self.answer)(name, None).arrive().await?;
            Ok(blob)
        })
    }

    fn remove<'a>(&'a self, name: &'a str, when: When) -> StoreFuture<'a, bool> {
        self.store.remove(name, when)
    }

    fn append<'a>(
        &'a self,
        log: &'a str,
        entry: &'a [u8],
        bounds: LogBounds,
        fence: u64,
    ) -> StoreFuture<'a, Option<u64>> {
        self.store.append(log, entry, bounds, fence)
    }

    fn read<'a>(
        &'a self,
        log: &'a str,
        after: Option<u64>,
        most: usize,
    ) -> StoreFuture<'a, LogPage> {
        self.store.read(log, after, most)
    }

    fn publish<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, ()> {
        self.store.publish(topic)
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, Subscription> {
        self.store.subscribe(topic)
    }

    fn lease<'a>(
        &'a self,
        name: &'a str,
        holder: HolderId,
        note: &'a [u8],
        keep: Duration,
    ) -> StoreFuture<'a, Leased> {
        self.store.lease(name, holder, note, keep)
    }

    fn release<'a>(&'a self, name: &'a str, holder: HolderId) -> StoreFuture<'a, bool> {
        self.store.release(name, holder)
    }

    fn take<'a>(&'a self, name: &'a str, bucket: Bucket, tokens: u32) -> StoreFuture<'a, Taken> {
        self.store.take(name, bucket, tokens)
    }

    fn spend<'a>(&'a self, name: &'a str, quota: Quota, calls: u64) -> StoreFuture<'a, Taken> {
        self.store.spend(name, quota, calls)
    }

    fn once<'a>(&'a self, name: &'a str, keep: Duration) -> StoreFuture<'a, bool> {
        self.store.once(name, keep)
    }
}
