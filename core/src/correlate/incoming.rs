//! Requests of the peer that are in flight, found by their id.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::arena::Arena;
use super::key::RequestKey;

/// Names one incoming request for ever, so an answer that comes too late finds nothing, even
/// when the peer has used the same id again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IncomingKey(RequestKey);

/// Why an incoming request was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A request with this id is in flight; it is untouched (R-RPC-05).
    Duplicate(IncomingKey),
    /// As many requests are in flight as the table admits.
    Full,
}

/// An id that no request in flight has, as of a look at the table.
#[derive(Clone, Copy, Debug)]
pub struct Vacant {
    /// Of the id; `None` where it was not needed to see that no request has it.
    hash: Option<u64>,
}

/// The requests of one stream that are not yet answered, with `D` for each.
///
/// `I` is the owned id. Its `Hash` and `Eq` say what makes two ids the same: the decoded value
/// and its type, so `1` is not `"1"` (R-RPC-06). A borrowed id `Q` is looked up without being
/// copied; it must hash as the `I` it equals. The hash is seeded, so a peer cannot choose ids
/// that collide. Allocates only while it grows, but for what the ids themselves hold.
#[derive(Debug)]
pub struct Incoming<I, D> {
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

impl<I, D> Incoming<I, D> {
    /// An empty table for at most `max_in_flight` requests (and at most 2^20 − 1).
    pub fn new(max_in_flight: usize) -> Self {
        Self {
            requests: Arena::new(max_in_flight),
            by_id: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Takes a request in.
    ///
    /// # Errors
    ///
    /// [`Refused`], with nothing changed.
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

    /// Whether a request with this id may come in: `Err` with the one that has it.
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

    /// Takes a request in whose id was [checked](Self::check), with nothing inserted since.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`], with nothing changed.
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
        let request = Request {
            hash,
            id: id.into(),
            data,
        };
        let key = self.requests.insert(request).map_err(|_| Refused::Full)?;
        let requests = &self.requests;
        self.by_id
            .insert_unique(hash, key, |&key| requests.get(key).map_or(0, |r| r.hash));
        Ok(IncomingKey(key))
    }

    /// Takes a request in that is not to be found by an id, of which there may be others with the
    /// same one, or with none.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`], with nothing changed.
    pub fn insert_unnamed(&mut self, id: impl Into<I>, data: D) -> Result<IncomingKey, Refused> {
        let request = Request {
            hash: 0,
            id: id.into(),
            data,
        };
        let key = self.requests.insert(request).map_err(|_| Refused::Full)?;
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

    /// The id of a request in flight, as its raw token was kept.
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

    /// Ends a request: it was answered or cancelled. `None` when it has ended before. Whoever
    /// gets `Some` is the one that may write its answer (R-CAN-11).
    #[inline]
    pub fn remove(&mut self, key: IncomingKey) -> Option<(I, D)> {
        let request = self.requests.remove(key.0)?;
        if let Ok(entry) = self.by_id.find_entry(request.hash, |&other| other == key.0) {
            entry.remove();
        }
        Some((request.id, request.data))
    }

    /// Ends every request and hands each to `end`.
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

    /// Requests in flight.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Is no request in flight?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
