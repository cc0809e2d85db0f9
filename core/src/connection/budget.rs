//! The account of what a server holds for its peers, and its limits.
//!
//! ```text
//!   in transit   messages on their way in or out: incomplete, waiting, being handled, queued
//!       small    holdings of at most SMALL_BYTES: admitted while the reserve lasts
//!       large    all others: refused once everything together fills all but the reserve
//!   kept         what outlives its request: replay logs, results, references, subscriptions, introductions
//! ```
//!
//! Holdings are counted once they exist, with atomics and no lock. So the sum may exceed the limit by
//! what threads add at the same moment, and by the answers of calls that were already admitted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;

use super::source_counts::SourceCounts;
use crate::limits::{
    ALLOCATOR_SHARE, RESERVE_SHARE, SMALL_BYTES, TotalLimits, UNCOUNTED_BYTES, may_have_more,
};

/// The total of what all connections of a server hold, over all its transports, and the limits for it.
/// Clones of a [`Config`](super::Config) share its budget.
#[derive(Debug)]
pub struct Budget {
    max_incoming: usize,
    max_bytes: AtomicUsize,
    /// Whether the program chose the limits.
    is_chosen: bool,
    requests: AtomicUsize,
    bytes: AtomicUsize,
    large: AtomicUsize,
    kept: AtomicUsize,
    calls: AtomicUsize,
    /// The requests in flight per source.
    pub(super) source_counts: SourceCounts,
}

/// The counts of one holder in a [`Budget`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Requests of the peer in flight.
    pub requests: usize,
    /// Bytes in total.
    pub bytes: usize,
    /// The part of `bytes` that is in transit, if that is more than [`SMALL_BYTES`]; else zero.
    pub large: usize,
    /// The part of `bytes` that outlives its request.
    pub kept: usize,
    /// Requests of the peer passed to a handler since the connection was created.
    pub calls: usize,
}

impl Share {
    /// A share of bytes in transit.
    pub fn in_transit(bytes: usize) -> Self {
        Self {
            bytes,
            large: if bytes > SMALL_BYTES { bytes } else { 0 },
            ..Self::default()
        }
    }

    /// A share of bytes that outlive their request.
    pub fn kept(bytes: usize) -> Self {
        Self {
            bytes,
            kept: bytes,
            ..Self::default()
        }
    }
}

/// The limits for a pipe, until a network transport joins the budget.
impl Default for Budget {
    fn default() -> Self {
        Self {
            is_chosen: false,
            ..Self::new(TotalLimits::PIPE)
        }
    }
}

impl Budget {
    /// Creates an unused budget with these limits.
    pub fn new(limits: TotalLimits) -> Self {
        Self {
            max_incoming: limits.max_incoming,
            max_bytes: AtomicUsize::new(limits.max_bytes),
            is_chosen: true,
            requests: AtomicUsize::default(),
            bytes: AtomicUsize::default(),
            large: AtomicUsize::default(),
            kept: AtomicUsize::default(),
            calls: AtomicUsize::default(),
            source_counts: SourceCounts::default(),
        }
    }

    /// Records that the server is reached over a network from now on. Unless the program chose other
    /// limits, [`TotalLimits::default`] then limits the bytes.
    pub fn join_network(&self) {
        if !self.is_chosen {
            let max = TotalLimits::default().max_bytes;
            self.max_bytes.store(max, Relaxed);
        }
    }

    /// The limit for the memory that all connections together take: [`TotalLimits::max_bytes`].
    pub fn max_bytes(&self) -> usize {
        self.max_bytes.load(Relaxed)
    }

    /// The limit for [`bytes`](Self::bytes): what the allocator does not need.
    fn max_held(&self) -> usize {
        let max = self.max_bytes();
        max - max / ALLOCATOR_SHARE
    }

    /// Requests of peers in flight on all connections.
    pub fn requests(&self) -> usize {
        self.requests.load(Relaxed)
    }

    /// Bytes held on behalf of all connections.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Requests passed to a handler so far, on all connections.
    pub fn calls(&self) -> usize {
        self.calls.load(Relaxed)
    }

    /// Whether no further request may begin, however small.
    pub fn is_exceeded(&self) -> bool {
        self.requests() >= self.max_incoming || !self.has_room_for_small(0)
    }

    /// Whether nothing large may begin.
    pub(crate) fn is_tight(&self) -> bool {
        self.bytes() > self.max_for_large()
    }

    /// Whether there is room for `more` bytes of a holding that has `total` bytes.
    pub(crate) fn has_room(&self, total: usize, more: usize) -> bool {
        match total <= SMALL_BYTES {
            true => self.has_room_for_small(more),
            false => self.bytes().saturating_add(more) <= self.max_for_large(),
        }
    }

    /// Small holdings may use the whole budget; the reserve is theirs even when large ones exceed the
    /// rest.
    fn has_room_for_small(&self, more: usize) -> bool {
        let (bytes, max) = (self.bytes(), self.max_held());
        bytes.saturating_add(more) <= max || self.small(bytes) + more <= max / RESERVE_SHARE
    }

    /// Large holdings may use everything except the part of the reserve that small holdings have not
    /// used.
    fn max_for_large(&self) -> usize {
        let max = self.max_held();
        max - (max / RESERVE_SHARE).saturating_sub(self.small(self.bytes()))
    }

    /// Bytes of small holdings in transit, given `bytes` in total.
    fn small(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.large.load(Relaxed) + self.kept.load(Relaxed))
    }

    /// Whether `more` bytes may be kept beyond their request.
    fn may_keep(&self, more: usize) -> bool {
        let kept = self.kept.load(Relaxed).saturating_add(more);
        kept <= self.max_held() / crate::limits::KEPT_SHARE
            && self.bytes().saturating_add(more) <= self.max_for_large()
    }

    /// Whether a source with `own` requests in flight has as many as it may, by [`may_have_more`].
    pub(super) fn is_used_up_by(&self, own: usize) -> bool {
        !may_have_more(own, self.requests(), self.max_incoming)
    }

    /// Replaces the share of one holder.
    pub(crate) fn change(&self, share: &mut Share, new: Share) {
        adjust(&self.requests, &mut share.requests, new.requests);
        adjust(&self.bytes, &mut share.bytes, new.bytes);
        if (share.large | new.large | share.kept | new.kept) != 0 {
            adjust(&self.large, &mut share.large, new.large);
            adjust(&self.kept, &mut share.kept, new.kept);
        }
        adjust(&self.calls, &mut share.calls, new.calls);
    }

    /// Wraps `block` so that it counts as `held` bytes in transit until its last clone is dropped.
    /// Short blocks are not counted: the limit for requests in flight bounds their number.
    pub(crate) fn counted(self: &Arc<Self>, block: Bytes, held: usize) -> Bytes {
        if block.len() <= UNCOUNTED_BYTES {
            return block;
        }
        let mut account = Held::of(self);
        account.carry(held.max(block.len()));
        Bytes::from_owner(Counted {
            block,
            _account: account,
        })
    }

    /// Wraps the pieces of one message, as [`counted`](Self::counted) does.
    pub(crate) fn counted_all<T>(self: &Arc<Self>, pieces: T) -> T
    where
        T: IntoIterator<Item = Bytes> + FromIterator<Bytes> + std::ops::Deref<Target = [Bytes]>,
    {
        if pieces.iter().all(|piece| piece.len() <= UNCOUNTED_BYTES) {
            return pieces;
        }
        let counted = |piece: Bytes| {
            let len = piece.len();
            self.counted(piece, len)
        };
        pieces.into_iter().map(counted).collect()
    }
}

struct Counted {
    block: Bytes,
    _account: Held,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.block
    }
}

/// The share of a holder other than a connection; given back on drop.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    share: Share,
}

impl Held {
    /// Creates an empty share.
    pub fn of(budget: &Arc<Budget>) -> Self {
        Self {
            budget: budget.clone(),
            share: Share::default(),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.share.bytes
    }

    /// Sets the share to this many bytes in transit.
    pub fn carry(&mut self, bytes: usize) {
        self.budget
            .change(&mut self.share, Share::in_transit(bytes));
    }

    /// Sets the share to this many bytes in transit if there is room for the increase; returns whether
    /// it did.
    pub fn try_carry(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.share.bytes);
        let fits = more == 0 || self.budget.has_room(bytes, more);
        if fits {
            self.carry(bytes);
        }
        fits
    }

    /// Sets the share to this many bytes that leave the reserve and what may be kept to others,
    /// however few they are.
    pub fn occupy(&mut self, bytes: usize) {
        let large = bytes;
        self.budget.change(
            &mut self.share,
            Share {
                bytes,
                large,
                ..Share::default()
            },
        );
    }

    /// Sets the share to this many bytes kept.
    pub fn keep(&mut self, bytes: usize) {
        self.budget.change(&mut self.share, Share::kept(bytes));
    }

    /// Sets the share to this many bytes kept if there is room for the increase; returns whether it
    /// did.
    pub fn try_keep(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.share.bytes);
        let fits = more == 0 || self.budget.may_keep(more);
        if fits {
            self.keep(bytes);
        }
        fits
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.keep(0);
    }
}

/// Replaces one part of a sum.
fn adjust(sum: &AtomicUsize, part: &mut usize, new: usize) {
    let old = std::mem::replace(part, new);
    if old != new {
        // Wraps around when the share shrinks; the sum of all shares is right.
        sum.fetch_add(new.wrapping_sub(old), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::KEPT_SHARE;

    /// The limit for the bytes held.
    const MAX: usize = 16 << 20;
    const RESERVE: usize = MAX / RESERVE_SHARE;

    fn budget() -> Arc<Budget> {
        Arc::new(Budget::new(TotalLimits {
            max_bytes: MAX * ALLOCATOR_SHARE / (ALLOCATOR_SHARE - 1),
            ..TotalLimits::default()
        }))
    }

    #[test]
    fn what_is_held_leaves_a_part_to_the_allocator() {
        let budget = budget();
        let mut all: Vec<_> = (0..=budget.max_bytes() / SMALL_BYTES)
            .map(|_| Held::of(&budget))
            .collect();
        all.iter_mut()
            .for_each(|one| _ = one.try_carry(SMALL_BYTES));
        assert_eq!(budget.bytes(), MAX);
        assert_eq!(budget.max_bytes() - budget.bytes(), MAX / 4);
    }

    #[test]
    fn what_is_large_leaves_the_reserve_to_what_is_small() {
        let budget = budget();
        let (mut large, mut small) = (Held::of(&budget), Held::of(&budget));
        assert!(large.try_carry(MAX - RESERVE) && !budget.is_tight());
        assert!(!large.try_carry(MAX - RESERVE + 1));
        assert_eq!(budget.bytes(), MAX - RESERVE);
        assert!(small.try_carry(SMALL_BYTES) && !budget.is_exceeded());
        // The answer to a call that was admitted before is counted in any case.
        large.carry(2 * MAX);
        assert!(budget.is_tight() && !budget.is_exceeded());
        let mut others: Vec<_> = (0..2 * RESERVE / SMALL_BYTES)
            .map(|_| Held::of(&budget))
            .collect();
        let served = others
            .iter_mut()
            .filter_map(|one| one.try_carry(SMALL_BYTES).then_some(()));
        assert_eq!(served.count() + 1, RESERVE / SMALL_BYTES);
        assert!(!small.try_carry(SMALL_BYTES + 1));
        drop((large, small, others));
        assert_eq!(budget.bytes(), 0);
        assert!(!budget.is_tight() && !budget.is_exceeded());
    }

    #[test]
    fn what_is_small_uses_everything_where_nothing_is_large() {
        let budget = budget();
        let count = MAX / SMALL_BYTES;
        let mut all: Vec<_> = (0..=count).map(|_| Held::of(&budget)).collect();
        let fits = all
            .iter_mut()
            .filter_map(|one| one.try_carry(SMALL_BYTES).then_some(()));
        assert_eq!(fits.count(), count);
        let mut large = Held::of(&budget);
        assert!(!large.try_carry(SMALL_BYTES + 1));
        all.clear();
        assert!(large.try_carry(SMALL_BYTES + 1));
    }

    #[test]
    fn what_is_kept_never_takes_the_place_of_what_is_under_way() {
        let budget = budget();
        let mut kept = Held::of(&budget);
        assert!(kept.try_keep(MAX / KEPT_SHARE) && !kept.try_keep(MAX / KEPT_SHARE + 1));
        assert!(Held::of(&budget).try_carry(MAX - MAX / KEPT_SHARE - RESERVE));
        let mut large = Held::of(&budget);
        assert!(large.try_carry(MAX - MAX / KEPT_SHARE - RESERVE));
        assert!(
            !Held::of(&budget).try_keep(1),
            "what is under way comes first"
        );
    }

    #[test]
    fn a_block_counts_until_the_last_part_of_it_is_gone() {
        let budget = budget();
        let short = budget.counted(vec![1; UNCOUNTED_BYTES].into(), UNCOUNTED_BYTES);
        assert_eq!(budget.bytes(), 0);
        let block = budget.counted(vec![2; 100_000].into(), 200_000);
        let part = block.slice(10..20);
        drop(block);
        assert_eq!(budget.bytes(), 200_000);
        assert_eq!((&part[..], short.len()), (&[2; 10][..], UNCOUNTED_BYTES));
        drop(part);
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn the_sum_is_right_whoever_changes_it() {
        let budget = budget();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let budget = &budget;
                scope.spawn(move || {
                    let mut held = Held::of(budget);
                    for n in 0..10_000_usize {
                        held.carry(n.wrapping_mul(7919 + thread) % 200_000);
                        held.try_keep(n % 1000);
                    }
                });
            }
        });
        assert_eq!((budget.bytes(), budget.requests()), (0, 0));
        assert_eq!(budget.large.load(Relaxed) + budget.kept.load(Relaxed), 0);
    }
}
