//! State that several processes of one server share: a trait of a few verbs, and a store in memory.
//!
//! A store holds what has to outlive a process or be known to its siblings: facts of sessions, event logs,
//! rates, marks against replays. [`LocalStore`] keeps all of this in the memory of one process;
//! `RedisStore` of [`io`](crate::io), feature `redis`, on a server of Redis or Valkey. `SealedStore`, feature `sealing`,
//! stands above any store: names and contents are then readable only with its keys.
//!
//! # Verbs
//!
//! Each verb is one atomic step and at most one round trip.
//!
//! | verb | form of the state | bounds | returns |
//! |---|---|---|---|
//! | [`get`](SharedStore::get), [`put`](SharedStore::put), [`remove`](SharedStore::remove) | a blob with a version | [`MAX_VALUE_BYTES`] | whether the condition [`When`] held |
//! | [`append`](SharedStore::append), [`read`](SharedStore::read) | a log of entries whose ids rise | [`LogBounds`]: entries, bytes and time; a page of [`MAX_PAGE_BYTES`] | the id; entries after an id, and whether any are missing |
//! | [`publish`](SharedStore::publish), [`subscribe`](SharedStore::subscribe) | none: a hint to look again | one hint waits per subscription | |
//! | [`lease`](SharedStore::lease), [`release`](SharedStore::release) | one holder for a time, with a fencing token | [`MAX_NOTE_BYTES`] | the token, or who holds the lease |
//! | [`take`](SharedStore::take) | a bucket of tokens (GCRA) | one number | whether there were tokens, and if not, when there will be |
//! | [`spend`](SharedStore::spend) | calls counted against a quota, until its period is over | [`MAX_CALLS`] | whether there were calls left, and if not, when there will be |
//! | [`once`](SharedStore::once) | a mark | none | whether this call was the first |
//!
//! Names have at most [`MAX_NAME_BYTES`]; a blob, a log, a lease, a bucket, a quota and a mark of the same name are six
//! things. Everything has a time after which the store forgets it, of at most [`MAX_KEEP`], and time is the store's:
//! clocks of the processes do not matter.
//!
//! # While the store is away
//!
//! A verb fails within the store's time-out; it never waits for the store to return. An error with
//! [`StoreError::may_have_happened`] leaves open whether the verb was carried out. No verb is repeated by
//! a store. What a caller does then is the caller's decision: a rate may fail open, a mark against replays
//! has to fail closed.
//!
//! | what uses a store | a verb fails: | so while the store is away |
//! |---|---|---|
//! | `SharedSessions` of [`io::http`](crate::io), feature `http` | accepting a session: open; ending one: closed | sessions go on and move between processes; a client cannot end its session everywhere (503) |
//! | rates and quotas: [`Policy::share`](crate::policy::Policy::share) | counting: open | each process counts by itself |
//! | proofs of tokens: [`Policy::share`](crate::policy::Policy::share), feature `resource-server` | accepting a proof: closed | requests with proofs get status 503 |
//! | states of calls: [`Builder::single_use_states_on`](crate::server::Builder::single_use_states_on) | accepting a state: closed | the call fails as by an overloaded server |
//! | tasks: [`Builder::share_tasks`](crate::server::Builder::share_tasks) | beginning and running one: open; finding that of another process: closed | tasks go on; other processes answer as an overloaded server does |
//! | changes of lists and resources, with `SharedSessions` | telling other processes: open | clients of the same process hear of them; the others do when the store is back |
//! | subscriptions and log levels of these sessions | noting and reading them: open | they have effect at their process; other processes know of them when the store is back |
//! | streams of these sessions | writing events: open; resuming at another process: closed | streams go on; a client can resume one at its own process only (503 elsewhere) |
//!
//! A store that is full refuses new state ([`StoreFault::Full`]) instead of forgetting other state, so nothing is
//! accepted twice.
//!
//! # Order and loss
//!
//! All verbs on one name take effect one after the other, in an order that agrees with real time (they are linearizable).
//! A store that restarts without its data has lost all names at once; ids of logs, versions and tokens that it gives
//! afterwards are nevertheless new ones. Hints may be lost or come twice; after a lost connection each subscription
//! gets one.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "client")] {
//! # use mcpbolt::client::block_on;
//! use std::time::Duration;
//!
//! use mcpbolt::store::{LocalStore, SharedStore, StoreError, When};
//!
//! async fn count(store: &dyn SharedStore) -> Result<u64, StoreError> {
//!     loop {
//!         let old = store.get("visits").await?;
//!         let when = old.as_ref().map_or(When::Absent, |blob| When::Is(blob.version));
//!         let visits = old.map_or(0, |blob| u64::from_be_bytes(blob.bytes[..].try_into().unwrap_or_default()));
//!         let value = (visits + 1).to_be_bytes();
//!         if store.put("visits", &value, Duration::from_secs(60), when).await?.is_some() {
//!             return Ok(visits + 1);
//!         }
//!     }
//! }
//! # block_on(async {
//! let store = LocalStore::new();
//! assert_eq!(count(&store).await?, 1);
//! assert_eq!(count(&store).await?, 2);
//! # Ok::<(), StoreError>(())
//! # }).unwrap();
//! # }
//! ```

mod bounds;
mod error;
mod hints;
#[cfg(feature = "sealing")]
mod keys;
mod local;
#[cfg(feature = "sealing")]
mod sealed;
mod verbs;

pub use self::bounds::{
    LogBounds, MAX_CALLS, MAX_KEEP, MAX_LOG_BYTES, MAX_LOG_ENTRIES, MAX_NAME_BYTES, MAX_NOTE_BYTES,
    MAX_PAGE_BYTES, MAX_VALUE_BYTES,
};
#[cfg(feature = "redis")]
pub(crate) use self::bounds::{
    check_keep, check_log, check_name, check_note, check_spend, check_take, check_value,
};
pub use self::error::{StoreError, StoreFault};
pub use self::hints::{Hints, Subscription};
#[cfg(feature = "sealing")]
pub use self::keys::{SealFailure, StoreKeys};
pub use self::local::{LocalStore, StoreLimits};
#[cfg(feature = "sealing")]
pub use self::sealed::SealedStore;
pub use self::verbs::{
    Blob, BlobVersion, Bucket, HolderId, Leased, LogEntry, LogPage, SharedStore, StoreFuture,
    Taken, When,
};
