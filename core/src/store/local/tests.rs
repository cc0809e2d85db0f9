//! The store in memory on a clock that the test turns, and its bounds.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::*;
use crate::store::{
    MAX_KEEP, MAX_LOG_BYTES, MAX_LOG_ENTRIES, MAX_NAME_BYTES, MAX_NOTE_BYTES, MAX_PAGE_BYTES,
    MAX_VALUE_BYTES,
};

const MINUTE: Duration = Duration::from_secs(60);

/// Completes a verb, which never waits here.
fn now<T>(mut verb: StoreFuture<'_, T>) -> Result<T, StoreError> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match verb.as_mut().poll(&mut context) {
        std::task::Poll::Ready(outcome) => outcome,
        std::task::Poll::Pending => panic!("the store in memory waits"),
    }
}

fn fault<T: fmt::Debug>(verb: StoreFuture<'_, T>) -> StoreFault {
    now(verb).unwrap_err().fault()
}

/// A store, and what turns its clock.
fn turned(limits: StoreLimits) -> (LocalStore, impl Fn(Duration)) {
    let (start, passed) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let read = passed.clone();
    let clock = move || start + Duration::from_nanos(read.load(Relaxed));
    let turn = move |by: Duration| {
        passed.fetch_add(by.as_nanos() as u64, Relaxed);
    };
    (LocalStore::with_clock(limits, clock), turn)
}

fn log(entries: u32, bytes: usize) -> LogBounds {
    LogBounds {
        entries,
        bytes,
        keep: MINUTE,
    }
}

#[test]
fn everything_is_kept_for_its_time() {
    let (store, turn) = turned(StoreLimits::default());
    let (one, two) = (HolderId::random().unwrap(), HolderId::random().unwrap());
    now(store.put("x", b"1", MINUTE, When::Always)).unwrap();
    let first = now(store.append("x", b"1", log(9, 99), 0))
        .unwrap()
        .unwrap();
    let Leased::Held { token } = now(store.lease("x", one, b"at one", MINUTE)).unwrap() else {
        panic!("a new lease is free")
    };
    assert!(now(store.once("x", MINUTE)).unwrap());
    turn(MINUTE - Duration::from_nanos(1));
    assert_eq!(&now(store.get("x")).unwrap().unwrap().bytes[..], b"1");
    assert_eq!(now(store.read("x", None, 9)).unwrap().last, first);
    let busy = now(store.lease("x", two, b"", MINUTE)).unwrap();
    let remaining = Duration::from_nanos(1);
    let note = Bytes::from_static(b"at one");
    assert_eq!(busy, Leased::Busy { note, remaining });
    assert!(!now(store.once("x", MINUTE)).unwrap());
    turn(Duration::from_nanos(1));
    assert_eq!(now(store.get("x")).unwrap(), None);
    assert_eq!(now(store.read("x", None, 9)).unwrap(), LogPage::default());
    assert!(matches!(
        now(store.lease("x", two, b"", MINUTE)).unwrap(),
        Leased::Held { token: next } if next > token
    ));
    assert!(now(store.once("x", MINUTE)).unwrap());
    turn(MINUTE);
    assert!(!now(store.release("x", two)).unwrap());
    assert!(
        format!("{store:?}").contains("entries: 0, bytes: 0"),
        "{store:?}"
    );
}

#[test]
fn a_bucket_gives_exactly_its_rate() {
    let (store, turn) = turned(StoreLimits::default());
    let bucket = Bucket::from(crate::limits::Rate {
        burst: 10,
        per_second: 300,
    });
    let taken = |tokens: u32| {
        let mut taken = 0;
        while now(store.take("x", bucket, tokens)).unwrap() == Taken::Now {
            taken += tokens;
        }
        taken
    };
    assert_eq!(taken(1), 10);
    // The rate is exact to the nanosecond of its interval, over any time.
    let mut all = 0;
    for _ in 0..100_000 {
        turn(Duration::from_millis(7));
        all += taken(1);
    }
    assert!((209_999..=210_001).contains(&all), "{all}");
    let Taken::After(wait) = now(store.take("x", bucket, 10)).unwrap() else {
        panic!("the bucket is empty")
    };
    turn(wait - Duration::from_nanos(1));
    assert_eq!(
        now(store.take("x", bucket, 10)).unwrap(),
        Taken::After(Duration::from_nanos(1))
    );
    turn(Duration::from_nanos(1));
    assert_eq!(now(store.take("x", bucket, 10)).unwrap(), Taken::Now);
    turn(MINUTE);
    assert_eq!(taken(5), 10, "no more than a burst");
}

#[test]
fn a_full_store_refuses_what_is_new_and_forgets_nothing() {
    let limits = StoreLimits {
        entries: 5,
        bytes: 4000,
    };
    let (store, turn) = turned(limits);
    let me = HolderId::random().unwrap();
    now(store.put("x", b"1", MINUTE, When::Always)).unwrap();
    now(store.append("x", b"1", log(9, 99), 0)).unwrap();
    now(store.lease("x", me, b"", MINUTE)).unwrap();
    let slow = Bucket {
        burst: 9,
        interval: MINUTE,
    };
    now(store.take("x", slow, 1)).unwrap();
    now(store.once("x", MINUTE)).unwrap();
    assert_eq!(
        fault(store.put("y", b"1", MINUTE, When::Always)),
        StoreFault::Full
    );
    assert_eq!(
        fault(store.append("y", b"1", log(9, 99), 0)),
        StoreFault::Full
    );
    assert_eq!(fault(store.lease("y", me, b"", MINUTE)), StoreFault::Full);
    assert_eq!(fault(store.take("y", slow, 1)), StoreFault::Full);
    assert_eq!(fault(store.once("y", MINUTE)), StoreFault::Full);
    // What is there can change.
    let value = [0; 3000];
    now(store.put("x", &value, MINUTE, When::Always)).unwrap();
    now(store.lease("x", me, b"here", MINUTE)).unwrap();
    assert!(!now(store.once("x", MINUTE)).unwrap());
    assert_eq!(
        fault(store.append("x", &[0; 900], log(9, 900), 0)),
        StoreFault::Full
    );
    now(store.put("x", b"", MINUTE, When::Always)).unwrap();
    now(store.append("x", &[0; 900], log(9, 900), 0)).unwrap();
    turn(MINUTE);
    assert!(now(store.once("y", MINUTE)).unwrap());
}

#[test]
fn arguments_have_bounds() {
    let store = LocalStore::new();
    let misuse = StoreFault::Misuse;
    let me = HolderId::random().unwrap();
    let longest = "n".repeat(MAX_NAME_BYTES);
    now(store.publish(&longest)).unwrap();
    for name in ["", "a{b", "}", &format!("{longest}n")] {
        assert_eq!(fault(store.get(name)), misuse, "{name}");
        assert_eq!(fault(store.subscribe(name)), misuse, "{name}");
    }
    let most = vec![0; MAX_VALUE_BYTES + 1];
    now(store.put("x", &most[1..], MAX_KEEP, When::Always)).unwrap();
    assert_eq!(fault(store.put("x", &most, MINUTE, When::Always)), misuse);
    let far = MAX_KEEP + Duration::from_nanos(1);
    for keep in [Duration::ZERO, Duration::from_micros(999), far] {
        assert_eq!(fault(store.put("x", b"", keep, When::Always)), misuse);
        assert_eq!(fault(store.once("x", keep)), misuse);
        assert_eq!(fault(store.lease("x", me, b"", keep)), misuse);
        let bounds = LogBounds { keep, ..log(1, 1) };
        assert_eq!(fault(store.append("x", b"", bounds, 0)), misuse);
    }
    let note = [0; MAX_NOTE_BYTES + 1];
    now(store.lease("x", me, &note[1..], MINUTE)).unwrap();
    assert_eq!(fault(store.lease("x", me, &note, MINUTE)), misuse);
    for bounds in [
        log(0, 9),
        log(MAX_LOG_ENTRIES + 1, 9),
        log(1, 0),
        log(1, MAX_LOG_BYTES + 1),
        log(1, 2),
    ] {
        assert_eq!(fault(store.append("x", b"123", bounds, 0)), misuse);
    }
    now(store.append("x", b"123", log(MAX_LOG_ENTRIES, MAX_LOG_BYTES), 0)).unwrap();
    let bucket = |burst, interval| Bucket { burst, interval };
    for (bucket, tokens) in [
        (bucket(1, Duration::from_nanos(999)), 1),
        (bucket(1, MINUTE), 2),
        (bucket(0, MINUTE), 1),
        (bucket(u32::MAX, MAX_KEEP), 1),
    ] {
        assert_eq!(fault(store.take("x", bucket, tokens)), misuse, "{bucket:?}");
    }
}

#[test]
fn a_page_of_a_log_is_bounded_in_bytes() {
    let store = LocalStore::new();
    let entry = vec![0; MAX_PAGE_BYTES / 2 + 1];
    let bounds = log(9, 9 * entry.len());
    for entry in [
        &entry[..],
        &entry[1..],
        &entry[1..],
        &vec![0; 2 * MAX_PAGE_BYTES],
    ] {
        now(store.append("x", entry, bounds, 0)).unwrap();
    }
    let mut after = None;
    let mut lens = Vec::new();
    while let page = now(store.read("x", after, 9)).unwrap()
        && let Some(last) = page.entries.last()
    {
        after = Some(last.id);
        lens.push(page.entries.len());
    }
    assert_eq!(lens, [1, 2, 1]);
    assert_eq!(now(store.read("x", None, 2)).unwrap().entries.len(), 1);
    assert!(now(store.read("x", None, 0)).unwrap().entries.is_empty());
}
