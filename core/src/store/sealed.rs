//! A store whose names and contents are readable only with its keys.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::bounds::{LogBounds, check_name, check_note};
use super::error::{StoreError, StoreFault};
use super::hints::Subscription;
use super::keys::{SealFailure, StoreKeys};
use super::verbs::{
    Blob, BlobVersion, Bucket, HolderId, Leased, LogEntry, LogPage, SharedStore, StoreFuture,
    Taken, When,
};
use crate::limits::Quota;

/// A store above another one, which sees neither names nor contents: blobs, entries of logs and notes of leases are
/// sealed, each for its name, and names are replaced by keyed digests.
///
/// The other store still sees sizes, times and which names are used together, the state of buckets and quotas, and that
/// there are marks. It cannot make up contents or move them to another name; it can hold back or repeat old ones.
///
/// Contents are [`StoreKeys::OVERHEAD`] bytes longer there, which count for bounds. Contents that do not open are
/// [`StoreFault::Unreadable`].
#[derive(Clone, Debug)]
pub struct SealedStore {
    inner: Arc<dyn SharedStore>,
    keys: Arc<StoreKeys>,
}

/// What a content is; part of the context it is sealed for.
#[derive(Clone, Copy)]
enum Form {
    Blob,
    Entry,
    Note,
}

impl Form {
    fn context(self, name: &str) -> Vec<u8> {
        let form = match self {
            Self::Blob => "blob",
            Self::Entry => "entry",
            Self::Note => "note",
        };
        [form, "\0", name].concat().into_bytes()
    }
}

impl SealedStore {
    /// Seals what is kept in `inner`.
    pub fn new(inner: Arc<dyn SharedStore>, keys: Arc<StoreKeys>) -> Self {
        Self { inner, keys }
    }

    fn name(&self, name: &str) -> Result<String, StoreError> {
        check_name(name)?;
        Ok(self.keys.name(name))
    }

    fn seal(&self, form: Form, name: &str, text: &[u8]) -> Result<Vec<u8>, StoreError> {
        let sealed = self.keys.seal(&form.context(name), text);
        sealed.map_err(|why| unreadable("content cannot be sealed", why))
    }

    fn open(&self, form: Form, name: &str, sealed: &[u8]) -> Result<Bytes, StoreError> {
        let opened = self.keys.open(&form.context(name), sealed);
        let opened = opened.map_err(|why| unreadable("content of the store cannot be opened", why));
        Ok(opened?.into())
    }
}

fn unreadable(what: &str, why: SealFailure) -> StoreError {
    StoreError::new(StoreFault::Unreadable, format!("{what}: {why}"))
}

impl SharedStore for SealedStore {
    fn get<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Blob>> {
        Box::pin(async move {
            let blob = self.inner.get(&self.name(name)?).await?;
            let opened = blob.map(|blob| {
                Ok(Blob {
                    bytes: self.open(Form::Blob, name, &blob.bytes)?,
                    version: blob.version,
                })
            });
            opened.transpose()
        })
    }

    fn put<'a>(
        &'a self,
        name: &'a str,
        value: &'a [u8],
        keep: Duration,
        when: When,
    ) -> StoreFuture<'a, Option<BlobVersion>> {
        Box::pin(async move {
            let (own, sealed) = (self.name(name)?, self.seal(Form::Blob, name, value)?);
            self.inner.put(&own, &sealed, keep, when).await
        })
    }

    fn remove<'a>(&'a self, name: &'a str, when: When) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.inner.remove(&self.name(name)?, when).await })
    }

    fn append<'a>(
        &'a self,
        log: &'a str,
        entry: &'a [u8],
        bounds: LogBounds,
        fence: u64,
    ) -> StoreFuture<'a, Option<u64>> {
        Box::pin(async move {
            let (own, sealed) = (self.name(log)?, self.seal(Form::Entry, log, entry)?);
            self.inner.append(&own, &sealed, bounds, fence).await
        })
    }

    fn read<'a>(
        &'a self,
        log: &'a str,
        after: Option<u64>,
        most: usize,
    ) -> StoreFuture<'a, LogPage> {
        Box::pin(async move {
            let page = self.inner.read(&self.name(log)?, after, most).await?;
            let opened = page.entries.into_iter().map(|entry| {
                Ok(LogEntry {
                    bytes: self.open(Form::Entry, log, &entry.bytes)?,
                    id: entry.id,
                })
            });
            Ok(LogPage {
                entries: opened.collect::<Result<_, StoreError>>()?,
                ..page
            })
        })
    }

    fn publish<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.inner.publish(&self.name(topic)?).await })
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, Subscription> {
        Box::pin(async move { self.inner.subscribe(&self.name(topic)?).await })
    }

    fn lease<'a>(
        &'a self,
        name: &'a str,
        holder: HolderId,
        note: &'a [u8],
        keep: Duration,
    ) -> StoreFuture<'a, Leased> {
        Box::pin(async move {
            check_note(note)?;
            let (own, sealed) = (self.name(name)?, self.seal(Form::Note, name, note)?);
            Ok(match self.inner.lease(&own, holder, &sealed, keep).await? {
                Leased::Busy { note, remaining } => Leased::Busy {
                    note: self.open(Form::Note, name, &note)?,
                    remaining,
                },
                held => held,
            })
        })
    }

    fn release<'a>(&'a self, name: &'a str, holder: HolderId) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.inner.release(&self.name(name)?, holder).await })
    }

    fn take<'a>(&'a self, name: &'a str, bucket: Bucket, tokens: u32) -> StoreFuture<'a, Taken> {
        Box::pin(async move { self.inner.take(&self.name(name)?, bucket, tokens).await })
    }

    fn spend<'a>(&'a self, name: &'a str, quota: Quota, calls: u64) -> StoreFuture<'a, Taken> {
        Box::pin(async move { self.inner.spend(&self.name(name)?, quota, calls).await })
    }

    fn once<'a>(&'a self, name: &'a str, keep: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.inner.once(&self.name(name)?, keep).await })
    }
}
