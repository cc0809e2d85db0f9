//! Requests of the peer that are in flight, found by id.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::arena::Arena;
use super::key::RequestKey;
#[cfg(feature = "server")]
use super::key::{MAX_GENERATION, MAX_SLOTS};

/// Identifies one incoming request for ever, so that a late answer finds nothing, even if the peer
/// has used the same id again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IncomingKey(RequestKey);

#[cfg(feature = "server")]
impl IncomingKey {
    /// The key of a call that is in no table. No request that arrives has it: no table has so many slots in use.
    pub(crate) fn detached(number: u64) -> Self {
        let generation = MAX_GENERATION - number % MAX_GENERATION;
        Self(RequestKey::new(MAX_SLOTS - 1, generation))
    }

    /// Whether it is the key of such a call.
    pub(crate) fn is_detached(self) -> bool {
        self.0.slot() == MAX_SLOTS - 1
    }
}

/// Why an incoming request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A request with this id is already in flight; it is unaffected (R-RPC-05).
    Duplicate(IncomingKey),
    /// The table's limit of requests in flight is reached.
    Full,
}

/// Proof that no request in flight had an id when [`InFlight::check`] was called.
#[derive(Clone, Copy, Debug)]
pub struct Vacant {
    /// The hash of the id; `None` if it was not needed to see that no request has the id.
    hash: Option<u64>,
}

/// The unanswered requests of one stream, each with data `D`.
///
/// `I` is the owned id. Its `Hash` and `Eq` define which ids are equal: those with the same decoded
/// value and type, so `1` is not `"1"` (R-RPC-06). A borrowed id `Q` is looked up without a copy;
/// it must hash like the `I` that it equals. The hash is seeded, so a peer cannot choose ids that
/// collide. Allocates only while it grows, apart from what the ids themselves allocate.
#[derive(Debug)]
pub struct InFlight<I, D> {
    requests: Arena<Request<I, D>>,
    by_id: HashTable<RequestKey>,
    hasher: DefaultHashBuilder,
}

#[derive(Debug)]
struct Request<I, D> {
    hash: u64,
    id: I,
    data: D,
}

impl<I, D> InFlight<I, D> {
    /// An empty table for at most `max_in_flight` requests (and at most 2^20 − 1).
    pub fn new(max_in_flight: usize) -> Self {
        Self {
            requests: Arena::new(max_in_flight),
            by_id: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Inserts a request.
    ///
    /// # Errors
    ///
    /// [`Refused`]; the table is unchanged.
    #[inline]
    pub fn insert<Q>(&mut self, id: Q, data: D) -> Result<IncomingKey, Refused>
    where
        Q: Hash + PartialEq<I> + Into<I>,
    {
        match self.check(&id) {
            Ok(vacant) => self.insert_vacant(vacant, id, data),
            Err(key) => Err(Refused::Duplicate(key)),
        }
    }

    /// Checks that no request in flight has this id; otherwise `Err` with the request that has it.
    #[inline]
    pub fn check<Q>(&self, id: &Q) -> Result<Vacant, IncomingKey>
    where
        Q: Hash + PartialEq<I>,
    {
        if self.by_id.is_empty() {
            return Ok(Vacant { hash: None });
        }
        let hash = self.hasher.hash_one(id);
        match self.find_hashed(hash, id) {
            Some(key) => Err(key),
            None => Ok(Vacant { hash: Some(hash) }),
        }
    }

    /// Inserts a request whose id was [checked](Self::check); no other request may have been
    /// inserted since.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; the table is unchanged.
    #[inline]
    pub fn insert_vacant(
        &mut self,
        Vacant { hash }: Vacant,
        id: impl Into<I> + Hash,
        data: D,
    ) -> Result<IncomingKey, Refused> {
        if self.requests.is_full() {
            return Err(Refused::Full);
        }
        let hash = hash.unwrap_or_else(|| self.hasher.hash_one(&id));
        let request = || Request {
            hash,
            id: id.into(),
            data,
        };
        let key = self.requests.insert(request).ok_or(Refused::Full)?;
        let requests = &self.requests;
        self.by_id
            .insert_unique(hash, key, |&key| requests.get(key).map_or(0, |r| r.hash));
        Ok(IncomingKey(key))
    }

    /// Inserts a request that cannot be found by id. Its id may be missing, or equal that of other
    /// requests.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; the table is unchanged.
    pub fn insert_unnamed(&mut self, id: impl Into<I>, data: D) -> Result<IncomingKey, Refused> {
        let request = || Request {
            hash: 0,
            id: id.into(),
            data,
        };
        let key = self.requests.insert(request).ok_or(Refused::Full)?;
        Ok(IncomingKey(key))
    }

    /// The request in flight with this id.
    #[inline]
    pub fn find<Q>(&self, id: &Q) -> Option<IncomingKey>
    where
        Q: Hash + PartialEq<I>,
    {
        if self.by_id.is_empty() {
            return None;
        }
        self.find_hashed(self.hasher.hash_one(id), id)
    }

    #[inline]
    fn find_hashed<Q: PartialEq<I>>(&self, hash: u64, id: &Q) -> Option<IncomingKey> {
        let same = |&key: &RequestKey| self.requests.get(key).is_some_and(|r| *id == r.id);
        self.by_id.find(hash, same).copied().map(IncomingKey)
    }

    /// The id of a request in flight, with its raw token.
    #[inline]
    pub fn id(&self, key: IncomingKey) -> Option<&I> {
        self.requests.get(key.0).map(|request| &request.id)
    }

    /// The data of a request in flight.
    #[inline]
    pub fn get(&self, key: IncomingKey) -> Option<&D> {
        self.requests.get(key.0).map(|request| &request.data)
    }

    /// The data of a request in flight.
    #[inline]
    pub fn get_mut(&mut self, key: IncomingKey) -> Option<&mut D> {
        self.requests
            .get_mut(key.0)
            .map(|request| &mut request.data)
    }

    /// Ends a request that was answered or cancelled. `None` if it has already ended. Only the
    /// caller that gets `Some` may write the answer (R-CAN-11).
    #[inline]
    pub fn remove(&mut self, key: IncomingKey) -> Option<(I, D)> {
        let request = self.requests.remove(key.0)?;
        if let Ok(entry) = self.by_id.find_entry(request.hash, |&other| other == key.0) {
            entry.remove();
        }
        Some((request.id, request.data))
    }

    /// Ends every request, and passes each to `end`.
    pub fn drain(&mut self, mut end: impl FnMut(I, D)) {
        self.by_id.clear();
        for (_, request) in self.requests.drain() {
            end(request.id, request.data);
        }
    }

    /// The requests in flight, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (IncomingKey, &I, &D)> {
        let requests = self.requests.iter();
        requests.map(|(key, request)| (IncomingKey(key), &request.id, &request.data))
    }

    /// The number of requests in flight.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether no request is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
