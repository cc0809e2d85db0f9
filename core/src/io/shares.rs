//! A bounded table that many sources share: which source gets a place, and which entry gives way.
//!
//! One source holds at most its limit, by default three quarters of the table; a further entry replaces
//! one of its own. The last quarter is for sources that hold few. When there is no room for a new
//! entry:
//!
//! 1. an entry whose handshake has been unfinished for a while gives way: first one that has sent nothing;
//!    of each kind the oldest;
//! 2. then one of the source that holds most: of the new entry's own source, if none holds more.
//!
//! Among the entries of one source, the first to give way is one that has sent nothing, then one with an
//! unfinished handshake, then one that was never used, then the longest unused; of each kind the oldest.
//! An entry that has just reached its stage is spared if another entry of its source has been left alone
//! for long.
//!
//! No entry gives way to a source that holds more than the entry's own source.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::hash::Hash;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use crate::connection::RequestSource;
use crate::limits::may_have_more;

/// How many unfinished entries are checked for one whose source holds enough, so that a new entry costs
/// bounded work.
const LOOKS: usize = 64;

/// In a table that [spares](Shares::sparing) newcomers, how long an entry is spared at each stage before
/// [`Stage::Used`], and for how long an entry that gives way in its stead was left alone.
const SPARED: Duration = Duration::from_secs(1);
const LEFT_ALONE: Duration = Duration::from_secs(10);

/// How far an entry has come: a lower stage gives way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The peer has sent nothing.
    Silent,
    /// The handshake is not finished.
    Unfinished,
    /// Nothing was sent after the handshake.
    Unused,
    Used,
}

impl Stage {
    const ALL: [Self; 4] = [Self::Silent, Self::Unfinished, Self::Unused, Self::Used];

    /// Whether the handshake is not finished.
    pub fn is_unfinished(self) -> bool {
        self <= Self::Unfinished
    }
}

struct Entry<V> {
    /// The number of its source.
    holder: usize,
    stage: Stage,
    since: Instant,
    value: V,
}

struct Holder<K> {
    source: RequestSource,
    /// The entries at each stage, the oldest first.
    stages: [BTreeSet<(Instant, K)>; Stage::ALL.len()],
}

impl<K: Clone + Ord> Holder<K> {
    fn len(&self) -> usize {
        self.stages.iter().map(BTreeSet::len).sum()
    }

    /// The oldest entry at a stage.
    fn oldest(&self, stage: Stage) -> Option<(Stage, Instant, K)> {
        let (since, key) = self.stages[stage as usize].first()?;
        Some((stage, *since, key.clone()))
    }
}

pub struct Shares<K, V> {
    all: usize,
    each: usize,
    spared: Duration,
    entries: HashMap<K, Entry<V>>,
    /// The numbers of sources that hold entries. Numbers are reused.
    sources: HashMap<RequestSource, usize>,
    /// Indexed by number. A holder whose number is free has no entries.
    holders: Vec<Holder<K>>,
    free: Vec<usize>,
    /// Unfinished entries, each with the number of its source.
    unfinished: BTreeSet<(Stage, Instant, K, usize)>,
    /// How many entries each source holds, with its number: the source that holds most is last.
    counts: BTreeSet<(usize, usize)>,
}

impl<K: Clone + Eq + Hash + Ord, V> Shares<K, V> {
    /// A table of `all` places, of which one source may hold `each`; three quarters if `None`.
    pub fn new(all: usize, each: Option<usize>) -> Self {
        let all = all.max(1);
        Self {
            all,
            each: each.unwrap_or(all - all / 4).clamp(1, all),
            spared: Duration::ZERO,
            entries: HashMap::new(),
            sources: HashMap::new(),
            holders: Vec::new(),
            free: Vec::new(),
            unfinished: BTreeSet::new(),
            counts: BTreeSet::new(),
        }
    }

    /// Has entries that have just begun, or just finished their handshake, give way only after entries that
    /// were left alone.
    #[must_use]
    pub fn sparing(self) -> Self {
        let spared = SPARED;
        Self { spared, ..self }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.get(key).map(|entry| &entry.value)
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values().map(|entry| &entry.value)
    }

    fn count(&self, source: &RequestSource) -> usize {
        let holder = self.sources.get(source);
        holder.map_or(0, |holder| self.held_by(*holder))
    }

    fn held_by(&self, holder: usize) -> usize {
        self.holders.get(holder).map_or(0, Holder::len)
    }

    /// Whether one more entry of that source fits without another giving way.
    pub fn has_room(&self, source: &RequestSource) -> bool {
        let (total, own) = (self.entries.len(), self.count(source));
        // Peers that cannot be told apart have no share of their own.
        match source {
            RequestSource::Unknown => total < self.all,
            _ => own < self.each && may_have_more(own, total, self.all),
        }
    }

    /// The entry that gives way to one more of that source, with its stage and the time of that stage;
    /// `None` if no entry may.
    pub fn yields(&self, source: &RequestSource, now: Instant) -> Option<(Stage, Instant, K)> {
        let own = self.count(source);
        let of_own = || self.first_of(*self.sources.get(source)?, now);
        if own >= self.each && *source != RequestSource::Unknown {
            return of_own();
        }
        let mut oldest = self.unfinished.iter().take(LOOKS);
        let gives_way = |(_, since, _, holder): &&(Stage, Instant, K, usize)| {
            !self.is_spared(*since, now) && self.held_by(*holder) >= own
        };
        if let Some((stage, since, key, _)) = oldest.find(gives_way) {
            return Some((*stage, *since, key.clone()));
        }
        match self.counts.last()? {
            (most, holder) if *most > own => self.first_of(*holder, now),
            _ => of_own(),
        }
    }

    /// The entry of that holder that gives way first.
    fn first_of(&self, holder: usize, now: Instant) -> Option<(Stage, Instant, K)> {
        let holder = self.holders.get(holder)?;
        let oldest = || {
            Stage::ALL
                .into_iter()
                .filter_map(|stage| holder.oldest(stage))
        };
        let gives_way = |(stage, since, _): &(Stage, Instant, K)| match stage {
            Stage::Used => now.saturating_duration_since(*since) > LEFT_ALONE,
            _ => !self.is_spared(*since, now),
        };
        oldest().find(gives_way).or_else(|| oldest().next())
    }

    /// Whether an entry that came to its stage at that time is spared.
    fn is_spared(&self, since: Instant, now: Instant) -> bool {
        now.saturating_duration_since(since) < self.spared
    }

    pub fn insert(
        &mut self,
        key: K,
        source: RequestSource,
        (stage, since): (Stage, Instant),
        value: V,
    ) {
        let holder = self.number(source);
        let entry = Entry {
            holder,
            stage,
            since,
            value,
        };
        self.counted(holder, |shares| shares.note(&key, &entry));
        self.entries.insert(key, entry);
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.counted(entry.holder, |shares| shares.forget(key, &entry));
        if self.held_by(entry.holder) == 0
            && let Some(holder) = self.holders.get_mut(entry.holder)
        {
            self.sources.remove(&std::mem::take(&mut holder.source));
            self.free.push(entry.holder);
        }
        // Gives memory back when few entries are left of many.
        if self.entries.capacity() / 8 > self.entries.len() {
            self.entries.shrink_to(self.entries.len() * 2);
        }
        Some(entry.value)
    }

    /// Sets the stage of an entry, and the time at which it was last used.
    pub fn advance(&mut self, key: &K, stage: Stage, since: Instant) {
        let Some(mut entry) = self.entries.remove(key) else {
            return;
        };
        self.forget(key, &entry);
        (entry.stage, entry.since) = (stage, since);
        self.note(key, &entry);
        self.entries.insert(key.clone(), entry);
    }

    /// The number of a source; a new one if the source holds nothing.
    fn number(&mut self, source: RequestSource) -> usize {
        if let Some(number) = self.sources.get(&source) {
            return *number;
        }
        let holder = Holder {
            source: source.clone(),
            stages: [const { BTreeSet::new() }; _],
        };
        let number = self.free.pop().unwrap_or(self.holders.len());
        match self.holders.get_mut(number) {
            Some(place) => *place = holder,
            None => self.holders.push(holder),
        }
        self.sources.insert(source, number);
        number
    }

    /// Runs `work`, which changes how much a source holds, and updates `counts`.
    fn counted(&mut self, holder: usize, work: impl FnOnce(&mut Self)) {
        self.counts.remove(&(self.held_by(holder), holder));
        work(self);
        match self.held_by(holder) {
            0 => {}
            held => drop(self.counts.insert((held, holder))),
        }
    }

    fn note(&mut self, key: &K, entry: &Entry<V>) {
        let (stage, since) = (entry.stage, entry.since);
        let Some(holder) = self.holders.get_mut(entry.holder) else {
            return;
        };
        holder.stages[stage as usize].insert((since, key.clone()));
        if stage.is_unfinished() {
            let in_all = (stage, since, key.clone(), entry.holder);
            self.unfinished.insert(in_all);
        }
    }

    fn forget(&mut self, key: &K, entry: &Entry<V>) {
        let (stage, since) = (entry.stage, entry.since);
        let Some(holder) = self.holders.get_mut(entry.holder) else {
            return;
        };
        holder.stages[stage as usize].remove(&(since, key.clone()));
        if stage.is_unfinished() {
            let in_all = (stage, since, key.clone(), entry.holder);
            self.unfinished.remove(&in_all);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn source(n: u8) -> RequestSource {
        RequestSource::of_address([127, 0, 0, n].into())
    }

    struct Table(Shares<u32, ()>, Instant, u32);

    impl Table {
        fn new(all: usize, each: Option<usize>) -> Self {
            Self(Shares::new(all, each), Instant::now(), 0)
        }

        /// Adds an entry of that source. Returns the entry that gave way, or an error if it was
        /// refused.
        fn open(&mut self, from: u8, stage: Stage) -> Result<Option<u32>, ()> {
            let source = source(from);
            let mut gone = None;
            if !self.0.has_room(&source) {
                let (stage, _, key) = self.0.yields(&source, self.now()).ok_or(())?;
                if stage == Stage::Used && self.0.spared.is_zero() {
                    return Err(());
                }
                self.0.remove(&key);
                gone = Some(key);
            }
            self.2 += 1;
            self.0.insert(self.2, source, (stage, self.now()), ());
            Ok(gone)
        }

        fn use_now(&mut self, key: u32) {
            self.0.advance(&key, Stage::Used, self.now());
        }

        /// A millisecond passes with each entry.
        fn now(&self) -> Instant {
            self.1 + Duration::from_millis(self.2.into())
        }
    }

    fn sparing(all: usize) -> Table {
        let mut table = Table::new(all, None);
        table.0.spared = SPARED;
        table
    }

    /// Clients of one address that begin a session now and then, and leave the earlier ones, as those
    /// of many other addresses do.
    #[test]
    fn a_handshake_that_has_just_begun_does_not_give_way_to_another_of_its_own() {
        let mut table = sparing(90);
        (0..10).for_each(|_| table.open(1, Stage::Used).map(drop).unwrap());
        for from in 2..=9 {
            (0..10).for_each(|_| table.open(from, Stage::Unfinished).map(drop).unwrap());
        }
        table.2 += 20_000;
        (2..=9).for_each(|from| table.open(from, Stage::Unfinished).map(drop).unwrap());
        for round in 0..5 {
            let first = table.open(1, Stage::Unfinished).unwrap().unwrap();
            let mine = table.2;
            let second = table.open(1, Stage::Unfinished).unwrap().unwrap();
            assert!(table.0.get(&mine).is_some(), "{round}: {second} gave way");
            assert!(first <= 90 && second <= 90, "{round}: {first}, {second}");
            [mine, mine + 1]
                .into_iter()
                .for_each(|key| table.use_now(key));
        }
    }

    /// The same clients' sessions that have finished their handshake, and are about to be used.
    #[test]
    fn an_entry_that_is_about_to_be_used_does_not_give_way_to_another_of_its_own() {
        let mut table = sparing(90);
        for from in 1..=9 {
            (0..10).for_each(|_| table.open(from, Stage::Used).map(drop).unwrap());
        }
        table.2 += 20_000;
        for round in 0..3 {
            let left = table.open(1, Stage::Unused).unwrap().unwrap();
            let mine = table.2;
            let again = table.open(1, Stage::Unfinished).unwrap().unwrap();
            assert!(table.0.get(&mine).is_some(), "{round}: {again} gave way");
            assert!(left <= 90 && again <= 90, "{round}: {left}, {again}");
            table.use_now(mine);
            table.use_now(table.2);
        }
    }

    /// An address that floods the table with handshakes keeps what is in use at the same address.
    #[test]
    fn what_is_in_use_does_not_give_way_to_handshakes() {
        let mut table = sparing(100);
        (0..5).for_each(|_| table.open(1, Stage::Used).map(drop).unwrap());
        for _ in 0..500 {
            table.open(1, Stage::Unfinished).unwrap();
        }
        assert!((1..=5).all(|key| table.0.get(&key).is_some()));
    }

    /// An address that opens thousands of streams and says nothing does not keep a client at the same
    /// address from its handshake.
    #[test]
    fn what_is_silent_gives_way_before_an_older_handshake() {
        let mut table = sparing(100);
        table.open(1, Stage::Unfinished).unwrap();
        for _ in 0..500 {
            table.open(1, Stage::Silent).unwrap();
        }
        assert!(table.0.get(&1).is_some());
        table.open(2, Stage::Unfinished).unwrap();
        assert!(table.0.get(&1).is_some(), "nor do others");
    }

    #[test]
    fn what_is_unfinished_gives_way_first_the_oldest_first() {
        let mut table = Table::new(4, Some(4));
        for stage in [Stage::Used, Stage::Unused, Stage::Unfinished] {
            table.open(1, stage).unwrap();
        }
        table.open(2, Stage::Unfinished).unwrap();
        assert_eq!(table.open(2, Stage::Used), Ok(Some(3)));
        assert_eq!(table.open(2, Stage::Used), Ok(Some(4)));
        let own = table.open(1, Stage::Used);
        assert_eq!(own, Ok(Some(2)), "2 has no more than 1");
    }

    #[test]
    fn nothing_gives_way_to_a_source_that_holds_more() {
        let mut table = Table::new(100, None);
        table.open(1, Stage::Unfinished).unwrap();
        for _ in 0..1000 {
            table.open(2, Stage::Unfinished).unwrap();
        }
        assert!(table.0.get(&1).is_some());
        assert_eq!((table.0.count(&source(2)), table.0.len()), (74, 75));
        for from in 3..=255 {
            table.open(from, Stage::Unfinished).unwrap();
        }
        assert_eq!(table.0.len(), 100, "those who hold few come in");
    }

    #[test]
    fn the_last_quarter_is_for_those_who_hold_few() {
        let mut table = Table::new(100, None);
        let taken = |table: &mut Table, from| {
            let opened = (0..200).filter(|_| table.open(from, Stage::Used).is_ok());
            opened.count()
        };
        assert_eq!(taken(&mut table, 1), 75);
        assert_eq!((taken(&mut table, 2), taken(&mut table, 3)), (1, 1));
        let mut bounded = Table::new(100, Some(10));
        assert_eq!((taken(&mut bounded, 1), taken(&mut bounded, 2)), (10, 10));
        let mut one = Table::new(100, None);
        for n in 0..100 {
            let room = one.0.has_room(&RequestSource::Unknown);
            assert!(room, "{n}: nobody else is there");
            one.0
                .insert(n, RequestSource::Unknown, (Stage::Used, one.1), ());
        }
        assert!(!one.0.has_room(&RequestSource::Unknown));
    }

    /// Numbers of sources are reused, and then refer to the new source only.
    #[test]
    fn a_source_that_comes_back_holds_what_it_took_since() {
        let mut table = Table::new(100, None);
        for round in 0..3 {
            for from in 1..=5 {
                (0..from).for_each(|_| assert!(table.open(from + round, Stage::Used).is_ok()));
            }
            for from in 1..=5 {
                let held = table.0.count(&source(from + round));
                assert_eq!(held, usize::from(from));
            }
            let all: Vec<u32> = table.0.entries.keys().copied().collect();
            all.iter()
                .for_each(|key| assert!(table.0.remove(key).is_some()));
        }
        assert_eq!(table.0.holders.len(), 5);
    }

    #[test]
    fn nothing_is_kept_of_what_is_gone() {
        let mut table = Table::new(10, None);
        (1..=5).for_each(|from| assert!(table.open(from, Stage::Unfinished).is_ok()));
        table.0.advance(&1, Stage::Used, table.1);
        (1..=5).for_each(|key| assert!(table.0.remove(&key).is_some()));
        let shares = &table.0;
        assert!(shares.entries.is_empty() && shares.sources.is_empty());
        assert!(shares.unfinished.is_empty() && shares.counts.is_empty());
        assert!(shares.holders.iter().all(|holder| holder.len() == 0));
        assert_eq!(shares.free.len(), shares.holders.len());
    }
}
