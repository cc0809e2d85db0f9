//! Which connections of a pool there are, who has them and who waits: what the pool decides, without the
//! connections themselves. Time is an argument.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Options of a pool.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Maximum number of connections of one key, 10 by default (R-POL-02).
    pub max_connections: usize,
    /// Maximum number of connections of all keys, 100 by default. Beyond it, the connection of another key
    /// that has been idle for longest is closed.
    pub max_total: usize,
    /// How many callers may have the same connection at a time (R-POL-05): 1 by default, so that what a
    /// server asks or notifies belongs to one caller. Requests of several callers do not disturb one
    /// another: raise it where servers only answer.
    pub sharing: usize,
    /// How long a caller waits for a connection, 30 seconds by default.
    pub wait_timeout: Duration,
    /// Maximum number of callers that wait, 1,000 by default; further ones are refused at once.
    pub max_waiting: usize,
    /// How long a connection may be idle before it is closed, a minute by default.
    pub idle_timeout: Duration,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            max_connections: 10,
            max_total: 100,
            sharing: 1,
            wait_timeout: Duration::from_secs(30),
            max_waiting: 1000,
            idle_timeout: Duration::from_secs(60),
        }
    }
}

/// Counters of a pool: how many there are now, and how many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolCounts {
    /// Connections that nobody has.
    pub idle: usize,
    /// Connections that somebody has.
    pub in_use: usize,
    /// Connections that are being opened.
    pub opening: usize,
    /// Callers that wait.
    pub waiting: usize,
    /// Connections that were opened.
    pub opened: u64,
    /// Times that a connection was there already.
    pub reused: u64,
    /// Connections that could not be opened.
    pub failed: u64,
    /// Connections closed because nobody had used them for long, or another key needed their place.
    pub closed_idle: u64,
    /// Connections that broke, or were not fit for another caller.
    pub dropped: u64,
    /// Callers that waited in vain.
    pub timed_out: u64,
}

/// A connection of the pool.
pub type ConnectionId = u64;
/// A caller that waits.
pub type Ticket = u64;

/// The answer to a caller that need not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolGrant {
    /// A connection that is open.
    Use(ConnectionId),
    /// The right to open a connection: followed by `opened` or `lost`.
    Open(ConnectionId),
}

/// The answer to a caller.
#[derive(Debug, PartialEq, Eq)]
pub enum PoolAsked {
    /// It has a connection, or the right to open one.
    Granted(PoolGrant),
    /// It waits under this number.
    Waits(Ticket),
    /// Too many wait already.
    Refused,
}

#[derive(Debug)]
struct Place<K> {
    key: K,
    is_open: bool,
    /// Callers that have it.
    users: usize,
    /// When the last one gave it back.
    idle_since: Instant,
    /// Whether it may be given to further callers.
    is_fit: bool,
}

#[derive(Debug)]
struct Waiting<K> {
    ticket: Ticket,
    key: K,
    /// `None` for ever.
    until: Option<Instant>,
}

/// What a [`Pool`](super::Pool) decides, without the connections themselves: for programs that open connections in their own
/// way. Time is an argument. After each change, [`take_granted`](Self::take_granted), [`take_expired`](Self::take_expired) and
/// [`take_closing`](Self::take_closing) tell what to do.
#[derive(Debug)]
pub struct PoolLedger<K> {
    options: PoolOptions,
    places: HashMap<ConnectionId, Place<K>>,
    waiting: VecDeque<Waiting<K>>,
    next: u64,
    counts: PoolCounts,
    granted: Vec<(Ticket, PoolGrant)>,
    closing: Vec<ConnectionId>,
    expired: Vec<Ticket>,
}

impl<K: Clone + Eq + Hash> PoolLedger<K> {
    /// A ledger of no connections.
    pub fn new(options: PoolOptions) -> Self {
        Self {
            options,
            places: HashMap::new(),
            waiting: VecDeque::new(),
            next: 0,
            counts: PoolCounts::default(),
            granted: Vec::new(),
            closing: Vec::new(),
            expired: Vec::new(),
        }
    }

    /// A caller needs a connection. Those that wait come first, in order (R-POL-03).
    pub fn ask(&mut self, key: &K, now: Instant) -> PoolAsked {
        let is_first = self.waiting.iter().all(|other| other.key != *key);
        if let Some(grant) = is_first.then(|| self.find(key, now)).flatten() {
            return PoolAsked::Granted(grant);
        }
        if self.waiting.len() >= self.options.max_waiting {
            return PoolAsked::Refused;
        }
        let ticket = self.id();
        self.waiting.push_back(Waiting {
            ticket,
            key: key.clone(),
            until: now.checked_add(self.options.wait_timeout),
        });
        PoolAsked::Waits(ticket)
    }

    /// A caller waits no longer.
    pub fn withdraw(&mut self, ticket: Ticket) {
        self.waiting.retain(|other| other.ticket != ticket);
    }

    /// A connection was opened for its first caller.
    pub fn opened(&mut self, id: ConnectionId, now: Instant) {
        self.counts.opened += 1;
        if let Some(place) = self.places.get_mut(&id) {
            place.is_open = true;
        }
        // Where connections are shared, others may have it, too.
        self.serve(now);
    }

    /// A connection could not be opened, has broken or must not be used again. Its place is free.
    pub fn lost(&mut self, id: ConnectionId, now: Instant) {
        if let Some(place) = self.places.remove(&id) {
            match place.is_open {
                true => self.counts.dropped += 1,
                false => self.counts.failed += 1,
            }
            self.serve(now);
        }
    }

    /// A caller gives a connection back. One that is not fit for others is closed by its last caller, and
    /// given to no further ones before.
    pub fn give_back(&mut self, id: ConnectionId, is_fit: bool, now: Instant) {
        let Some(place) = self.places.get_mut(&id) else {
            return;
        };
        place.users = place.users.saturating_sub(1);
        place.idle_since = now;
        place.is_fit = is_fit;
        if place.users == 0 && !is_fit {
            self.closing.push(id);
            return self.lost(id, now);
        }
        self.serve(now);
    }

    /// A caller does not use what it has got.
    pub fn decline(&mut self, id: ConnectionId, now: Instant) {
        let is_fit = self.places.get(&id).is_none_or(|place| place.is_fit);
        self.give_back(id, is_fit, now);
    }

    /// Time has passed: callers have waited long enough, connections were idle for long.
    pub fn advance(&mut self, now: Instant) {
        while let Some(first) = self.waiting.front()
            && first.until.is_some_and(|until| until <= now)
        {
            self.expired.push(first.ticket);
            self.counts.timed_out += 1;
            self.waiting.pop_front();
        }
        let limit = self.options.idle_timeout;
        let is_stale = |place: &Place<K>| {
            is_idle(place) && now.saturating_duration_since(place.idle_since) >= limit
        };
        let stale: Vec<_> = self
            .places
            .iter()
            .filter(|(_, place)| is_stale(place))
            .map(|(id, _)| *id)
            .collect();
        stale.into_iter().for_each(|id| self.close_idle(id));
        self.serve(now);
    }

    /// When [`advance`](Self::advance) has something to do next.
    pub fn next_deadline(&self) -> Option<Instant> {
        let waiting = self.waiting.front().and_then(|first| first.until);
        let idle = self.places.values().filter(|place| is_idle(place));
        let limit = self.options.idle_timeout;
        let idle = idle
            .filter_map(|place| place.idle_since.checked_add(limit))
            .min();
        waiting.into_iter().chain(idle).min()
    }

    /// Closes the connections that nobody has, or all, and sends those away that wait.
    pub fn close_all(&mut self, also_used: bool) {
        let ends = |place: &Place<K>| also_used || is_idle(place);
        let ended = self.places.extract_if(|_, place| ends(place));
        self.closing.extend(ended.map(|(id, _)| id));
        self.expired
            .extend(self.waiting.drain(..).map(|one| one.ticket));
    }

    /// The callers that have got something.
    pub fn take_granted(&mut self) -> Vec<(Ticket, PoolGrant)> {
        std::mem::take(&mut self.granted)
    }

    /// The callers that waited in vain.
    pub fn take_expired(&mut self) -> Vec<Ticket> {
        std::mem::take(&mut self.expired)
    }

    /// The connections to close.
    pub fn take_closing(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.closing)
    }

    /// Counters.
    pub fn counts(&self) -> PoolCounts {
        let count = |belongs: fn(&Place<K>) -> bool| {
            self.places.values().filter(|place| belongs(place)).count()
        };
        PoolCounts {
            idle: count(is_idle),
            in_use: count(|place| place.is_open && place.users > 0),
            opening: count(|place| !place.is_open),
            waiting: self.waiting.len(),
            ..self.counts
        }
    }

    fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A connection for a caller, or a place for one. Of the idle ones the most recently used is taken, so that
    /// those that are not needed end.
    fn find(&mut self, key: &K, now: Instant) -> Option<PoolGrant> {
        let sharing = self.options.sharing.max(1);
        let own = |(_, place): &(&ConnectionId, &Place<K>)| place.key == *key;
        let free = |(_, place): &(&ConnectionId, &Place<K>)| {
            place.is_open && place.is_fit && place.users < sharing
        };
        let found = self.places.iter().filter(own).filter(free);
        let found = found.max_by_key(|(id, place)| (place.users == 0, place.idle_since, **id));
        if let Some(id) = found.map(|(id, _)| *id) {
            if let Some(place) = self.places.get_mut(&id) {
                place.users += 1;
            }
            self.counts.reused += 1;
            return Some(PoolGrant::Use(id));
        }
        if self.places.iter().filter(own).count() >= self.options.max_connections.max(1) {
            return None;
        }
        if self.places.len() >= self.options.max_total.max(1) {
            let idle = self.places.iter().filter(|(_, place)| is_idle(place));
            let longest = idle.min_by_key(|(id, place)| (place.idle_since, **id));
            let longest = longest.map(|(id, _)| *id)?;
            self.close_idle(longest);
        }
        let id = self.id();
        let place = Place {
            key: key.clone(),
            is_open: false,
            users: 1,
            idle_since: now,
            is_fit: true,
        };
        self.places.insert(id, place);
        Some(PoolGrant::Open(id))
    }

    fn close_idle(&mut self, id: ConnectionId) {
        self.places.remove(&id);
        self.counts.closed_idle += 1;
        self.closing.push(id);
    }

    /// Serves those that wait, in order. One that cannot be served does not hold up those of other keys.
    fn serve(&mut self, now: Instant) {
        let mut passed = Vec::new();
        let mut at = 0;
        while let Some(key) = self.waiting.get(at).map(|one| one.key.clone()) {
            let grant = (!passed.contains(&key))
                .then(|| self.find(&key, now))
                .flatten();
            match grant.and_then(|grant| Some((self.waiting.remove(at)?.ticket, grant))) {
                Some(granted) => self.granted.push(granted),
                None => {
                    passed.push(key);
                    at += 1;
                }
            }
        }
    }
}

fn is_idle<K>(place: &Place<K>) -> bool {
    place.is_open && place.users == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(change: impl FnOnce(&mut PoolOptions)) -> (PoolLedger<&'static str>, Instant) {
        let mut options = PoolOptions {
            max_connections: 2,
            ..PoolOptions::default()
        };
        change(&mut options);
        (PoolLedger::new(options), Instant::now())
    }

    /// Asks, opens if need be, and returns the connection.
    fn open(
        ledger: &mut PoolLedger<&'static str>,
        key: &'static str,
        now: Instant,
    ) -> ConnectionId {
        match ledger.ask(&key, now) {
            PoolAsked::Granted(PoolGrant::Open(id)) => {
                ledger.opened(id, now);
                id
            }
            PoolAsked::Granted(PoolGrant::Use(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    /// R-POL-01, R-POL-02: an idle one is used again, by its own key alone; else one is opened, up to the maximum.
    #[test]
    fn an_idle_connection_is_used_again_by_its_own_key() {
        let (mut ledger, now) = ledger(|_| ());
        let first = open(&mut ledger, "a", now);
        ledger.give_back(first, true, now);
        assert_ne!(open(&mut ledger, "b", now), first);
        assert_eq!(open(&mut ledger, "a", now), first);
        assert_ne!(open(&mut ledger, "a", now), first);
        assert!(matches!(ledger.ask(&"a", now), PoolAsked::Waits(_)));
        let counts = ledger.counts();
        assert_eq!(
            (counts.in_use, counts.waiting, counts.opened, counts.reused),
            (3, 1, 3, 1)
        );
    }

    /// R-POL-03
    #[test]
    fn callers_wait_in_order_for_as_long_as_they_may() {
        let (mut ledger, now) = ledger(|options| options.max_connections = 1);
        let id = open(&mut ledger, "a", now);
        let tickets =
            [0, 1, 2].map(
                |seconds| match ledger.ask(&"a", now + Duration::from_secs(seconds)) {
                    PoolAsked::Waits(ticket) => ticket,
                    other => panic!("{other:?}"),
                },
            );
        ledger.give_back(id, true, now);
        assert_eq!(ledger.take_granted(), [(tickets[0], PoolGrant::Use(id))]);
        // Later callers do not overtake those that wait.
        assert_eq!(ledger.next_deadline(), Some(now + Duration::from_secs(31)));
        ledger.advance(now + Duration::from_secs(31));
        assert_eq!(ledger.take_expired(), [tickets[1]]);
        ledger.withdraw(tickets[2]);
        ledger.give_back(id, true, now);
        assert_eq!(
            (ledger.take_granted(), ledger.counts().timed_out),
            (vec![], 1)
        );
    }

    #[test]
    fn a_broken_connection_leaves_and_makes_room() {
        let (mut ledger, now) = ledger(|options| options.max_connections = 1);
        let id = open(&mut ledger, "a", now);
        let PoolAsked::Waits(ticket) = ledger.ask(&"a", now) else {
            panic!("there is room");
        };
        ledger.lost(id, now);
        let granted = ledger.take_granted();
        assert!(
            matches!(granted[..], [(first, PoolGrant::Open(new))] if first == ticket && new != id)
        );
        // Late reports about it change nothing.
        ledger.give_back(id, true, now);
        ledger.lost(id, now);
        assert_eq!((ledger.counts().dropped, ledger.counts().opening), (1, 1));
    }

    #[test]
    fn idle_connections_end_and_give_way_to_other_keys() {
        let (mut ledger, now) = ledger(|options| options.max_total = 2);
        let (a, b) = (open(&mut ledger, "a", now), open(&mut ledger, "b", now));
        let PoolAsked::Waits(ticket) = ledger.ask(&"c", now) else {
            panic!("there is room");
        };
        ledger.give_back(b, true, now);
        assert_eq!(ledger.take_closing(), [b]);
        assert!(
            matches!(ledger.take_granted()[..], [(first, PoolGrant::Open(_))] if first == ticket)
        );
        ledger.give_back(a, true, now);
        ledger.advance(now + Duration::from_secs(59));
        assert!(ledger.take_closing().is_empty());
        ledger.advance(now + Duration::from_secs(60));
        assert_eq!(
            (ledger.take_closing(), ledger.counts().closed_idle),
            (vec![a], 2)
        );
    }

    /// R-POL-04, R-POL-05
    #[test]
    fn connections_are_shared_up_to_a_number_unless_they_are_kept_apart() {
        let (mut ledger, now) =
            ledger(|options| (options.sharing, options.max_connections) = (3, 1));
        let id = open(&mut ledger, "a", now);
        assert_eq!(open(&mut ledger, "a", now), id);
        assert_eq!(open(&mut ledger, "a", now), id);
        ledger.give_back(id, false, now);
        let PoolAsked::Waits(ticket) = ledger.ask(&"a", now) else {
            panic!("it is given to a further caller");
        };
        ledger.give_back(id, true, now);
        assert_eq!(ledger.take_granted(), [(ticket, PoolGrant::Use(id))]);
        ledger.give_back(id, false, now);
        assert!(ledger.take_closing().is_empty());
        ledger.give_back(id, false, now);
        assert_eq!(
            (ledger.take_closing(), ledger.counts().dropped),
            (vec![id], 1)
        );
    }

    #[test]
    fn those_that_wait_are_bounded_and_those_of_one_key_do_not_hold_up_others() {
        let (mut ledger, now) =
            ledger(|options| (options.max_waiting, options.max_connections) = (2, 1));
        let (a, b) = (open(&mut ledger, "a", now), open(&mut ledger, "b", now));
        let (PoolAsked::Waits(_), PoolAsked::Waits(ticket)) =
            (ledger.ask(&"a", now), ledger.ask(&"b", now))
        else {
            panic!("there is room");
        };
        assert_eq!(ledger.ask(&"a", now), PoolAsked::Refused);
        ledger.give_back(b, true, now);
        assert_eq!(ledger.take_granted(), [(ticket, PoolGrant::Use(b))]);
        ledger.close_all(true);
        let mut closing = ledger.take_closing();
        closing.sort_unstable();
        assert_eq!((closing, ledger.take_expired().len()), (vec![a, b], 1));
    }
}
