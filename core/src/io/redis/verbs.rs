//! The verbs of a store, as commands and scripts.

use std::time::Duration;

use bytes::Bytes;
use redis::{RedisResult, Value, cmd};

use super::RedisStore;
use super::connection::StoreConnection;
use super::scripts::{APPEND, LEASE, PUT, READ, RELEASE, REMOVE, SPEND, TAKE};
use crate::limits::Quota;
use crate::store::{
    Blob, BlobVersion, Bucket, HolderId, Leased, LogBounds, LogEntry, LogPage, MAX_PAGE_BYTES,
    SharedStore, StoreError, StoreFault, StoreFuture, Subscription, Taken, When, check_keep,
    check_log, check_name, check_note, check_spend, check_take, check_value,
};

/// The bytes of a version, which stand before a blob.
const VERSION_LEN: usize = size_of::<u64>();

fn millis(keep: Duration) -> u64 {
    keep.as_millis() as u64
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

/// An answer that the commands here do not give.
fn unknown() -> StoreError {
    let why = "the store answered something that this version does not know";
    StoreError::new(StoreFault::Unreadable, why)
}

fn number(value: &Value) -> Result<u64, StoreError> {
    match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| unknown()),
        _ => Err(unknown()),
    }
}

fn bytes(value: Value) -> Result<Bytes, StoreError> {
    match value {
        Value::BulkString(bytes) => Ok(bytes.into()),
        _ => Err(unknown()),
    }
}

impl RedisStore {
    /// Runs a script that returns 0, or after how many microseconds there is enough.
    async fn taken<F>(
        &self,
        script: impl FnOnce(StoreConnection) -> F + Send + 'static,
    ) -> Result<Taken, StoreError>
    where
        F: Future<Output = RedisResult<u64>> + Send,
    {
        Ok(match self.run(script).await? {
            0 => Taken::Now,
            wait => Taken::After(Duration::from_micros(wait)),
        })
    }
}

impl SharedStore for RedisStore {
    fn get<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Blob>> {
        Box::pin(async move {
            check_name(name)?;
            let key = self.key("b", name);
            let get = async move |mut connection| -> RedisResult<Option<Vec<u8>>> {
                cmd("GET").arg(key).query_async(&mut connection).await
            };
            let Some(mut bytes) = self.run(get).await?.map(Bytes::from) else {
                return Ok(None);
            };
            if bytes.len() < VERSION_LEN {
                return Err(unknown());
            }
            let version = bytes.split_to(VERSION_LEN);
            let version = version.first_chunk().ok_or_else(unknown)?;
            let version = BlobVersion(u64::from_be_bytes(*version));
            Ok(Some(Blob { bytes, version }))
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
            check_name(name)?;
            check_value(value)?;
            check_keep(keep)?;
            // Random, so that no two writes have the same one, in whichever process.
            let mut version = [0; VERSION_LEN];
            getrandom::fill(&mut version).map_err(|_| {
                StoreError::new(StoreFault::Unavailable, "the system provides no randomness")
            })?;
            let (key, blob) = (self.key("b", name), [&version, value].concat());
            let put = async move |mut connection| -> RedisResult<bool> {
                if let When::Is(BlobVersion(old)) = when {
                    let mut put = PUT.key(key);
                    put.arg(&old.to_be_bytes()).arg(blob).arg(millis(keep));
                    return put.invoke_async(&mut connection).await;
                }
                let mut set = cmd("SET");
                set.arg(key).arg(blob).arg("PX").arg(millis(keep));
                if when == When::Absent {
                    set.arg("NX");
                }
                let set: Option<String> = set.query_async(&mut connection).await?;
                Ok(set.is_some())
            };
            let is_written = self.run(put).await?;
            Ok(is_written.then_some(BlobVersion(u64::from_be_bytes(version))))
        })
    }

    fn remove<'a>(&'a self, name: &'a str, when: When) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            check_name(name)?;
            let key = self.key("b", name);
            let remove = async move |mut connection| -> RedisResult<bool> {
                match when {
                    When::Always => cmd("DEL").arg(key).query_async(&mut connection).await,
                    When::Absent => Ok(false),
                    When::Is(BlobVersion(old)) => {
                        let mut remove = REMOVE.key(key);
                        remove.arg(&old.to_be_bytes());
                        remove.invoke_async(&mut connection).await
                    }
                }
            };
            self.run(remove).await
        })
    }

    fn append<'a>(
        &'a self,
        log: &'a str,
        entry: &'a [u8],
        bounds: LogBounds,
        fence: u64,
    ) -> StoreFuture<'a, Option<u64>> {
        Box::pin(async move {
            check_name(log)?;
            check_log(entry, bounds)?;
            let (meta, list) = (self.key("l", log), self.key("e", log));
            let (channel, entry) = (self.key("h", log), entry.to_vec());
            let append = async move |mut connection| -> RedisResult<i64> {
                let mut append = APPEND.key(meta);
                append
                    .key(list)
                    .arg(entry)
                    .arg(bounds.entries)
                    .arg(bounds.bytes);
                append.arg(millis(bounds.keep)).arg(fence).arg(channel);
                append.invoke_async(&mut connection).await
            };
            Ok(u64::try_from(self.run(append).await?).ok())
        })
    }

    fn read<'a>(
        &'a self,
        log: &'a str,
        after: Option<u64>,
        most: usize,
    ) -> StoreFuture<'a, LogPage> {
        Box::pin(async move {
            check_name(log)?;
            let (meta, list) = (self.key("l", log), self.key("e", log));
            let read = async move |mut connection| -> RedisResult<Vec<Value>> {
                let mut read = READ.key(meta);
                read.key(list)
                    .arg(after.map_or_else(String::new, |after| after.to_string()));
                read.arg(most).arg(MAX_PAGE_BYTES);
                read.invoke_async(&mut connection).await
            };
            let mut page = self.run(read).await?.into_iter();
            let mut next = || number(&page.next().ok_or_else(unknown)?);
            let (last, from) = (next()?, next()?);
            let entries = (from + 1..).zip(page).map(|(id, entry)| {
                let bytes = bytes(entry)?;
                Ok(LogEntry { id, bytes })
            });
            Ok(LogPage {
                entries: entries.collect::<Result<_, StoreError>>()?,
                last,
                has_gap: after.is_some_and(|after| last == 0 || after != from),
            })
        })
    }

    fn publish<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check_name(topic)?;
            let channel = self.key("h", topic);
            let publish = async move |mut connection| {
                cmd("PUBLISH")
                    .arg(channel)
                    .arg("")
                    .exec_async(&mut connection)
                    .await
            };
            self.run(publish).await
        })
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, Subscription> {
        Box::pin(async move {
            check_name(topic)?;
            // Known before the server is asked, so that a new connection subscribes, too.
            let subscription = self.link.hints().subscribe(topic);
            let (link, deadline, topic) = (self.link.clone(), self.deadline(), topic.to_owned());
            self.spawn(async move { link.subscribe(deadline, &topic).await })
                .await?;
            Ok(subscription)
        })
    }

    fn lease<'a>(
        &'a self,
        name: &'a str,
        holder: HolderId,
        note: &'a [u8],
        keep: Duration,
    ) -> StoreFuture<'a, Leased> {
        Box::pin(async move {
            check_name(name)?;
            check_note(note)?;
            check_keep(keep)?;
            let (key, note) = (self.key("o", name), note.to_vec());
            let lease = async move |mut connection| -> RedisResult<Vec<Value>> {
                let mut lease = LEASE.key(key);
                lease.arg(holder.as_bytes()).arg(note).arg(millis(keep));
                lease.invoke_async(&mut connection).await
            };
            let mut leased = self.run(lease).await?.into_iter();
            let mut next = || leased.next().ok_or_else(unknown);
            Ok(match number(&next()?)? {
                0 => Leased::Busy {
                    note: bytes(next()?)?,
                    remaining: Duration::from_micros(number(&next()?)?),
                },
                _ => Leased::Held {
                    token: number(&next()?)?,
                },
            })
        })
    }

    fn release<'a>(&'a self, name: &'a str, holder: HolderId) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            check_name(name)?;
            let key = self.key("o", name);
            let release = async move |mut connection| -> RedisResult<bool> {
                let mut release = RELEASE.key(key);
                release.arg(holder.as_bytes());
                release.invoke_async(&mut connection).await
            };
            self.run(release).await
        })
    }

    fn take<'a>(&'a self, name: &'a str, bucket: Bucket, tokens: u32) -> StoreFuture<'a, Taken> {
        Box::pin(async move {
            check_name(name)?;
            check_take(bucket, tokens)?;
            let key = self.key("t", name);
            let take = async move |mut connection| -> RedisResult<u64> {
                let mut take = TAKE.key(key);
                take.arg(micros(bucket.interval))
                    .arg(tokens)
                    .arg(bucket.burst);
                take.invoke_async(&mut connection).await
            };
            self.taken(take).await
        })
    }

    fn spend<'a>(&'a self, name: &'a str, quota: Quota, calls: u64) -> StoreFuture<'a, Taken> {
        Box::pin(async move {
            check_name(name)?;
            check_spend(quota, calls)?;
            let key = self.key("q", name);
            let spend = async move |mut connection| -> RedisResult<u64> {
                let mut spend = SPEND.key(key);
                spend.arg(calls).arg(quota.calls).arg(millis(quota.period));
                spend.invoke_async(&mut connection).await
            };
            self.taken(spend).await
        })
    }

    fn once<'a>(&'a self, name: &'a str, keep: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            check_name(name)?;
            check_keep(keep)?;
            let key = self.key("m", name);
            let once = async move |mut connection| -> RedisResult<Option<String>> {
                let mut set = cmd("SET");
                set.arg(key).arg("").arg("NX").arg("PX").arg(millis(keep));
                set.query_async(&mut connection).await
            };
            Ok(self.run(once).await?.is_some())
        })
    }
}
