//! How many connections to a server there may be at a time.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::error::RequestError;
use crate::sync::lock;

/// The places of the connections to a server.
pub(super) struct Places {
    most: usize,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    taken: usize,
    /// How many of these are of connections that nobody uses any more, while something of them is left.
    left: usize,
    /// Those who wait for one of the latter.
    waiting: Vec<Waker>,
}

/// The place of a connection, until this is dropped.
pub(super) struct Place {
    all: Arc<Places>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether nobody uses the connection any more.
    is_left: bool,
    /// Who has the place next; `None` if it becomes free.
    next: Option<Arc<Mutex<Passing>>>,
}

/// A place on its way from one connection to the next.
#[derive(Default)]
struct Passing {
    /// Whether the connection before has left it for good.
    is_there: bool,
    /// Whether the next connection does not want it any more.
    is_declined: bool,
    waker: Option<Waker>,
}

/// Resolves to the place of another connection when nothing is left of that one.
pub(super) struct NextPlace {
    all: Arc<Places>,
    passing: Arc<Mutex<Passing>>,
}

impl Places {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            counts: Mutex::default(),
        })
    }

    /// Whether a place is free, or about to be.
    pub fn have_room(&self) -> bool {
        let counts = lock(&self.counts);
        counts.taken - counts.left < self.most
    }

    /// Takes a place. Waits if one is about to become free.
    ///
    /// # Errors
    /// [`RequestError::Overloaded`] when there are too many connections.
    pub fn poll_take(self: &Arc<Self>, cx: &Context<'_>) -> Poll<Result<Place, RequestError>> {
        let mut counts = lock(&self.counts);
        if counts.taken >= self.most {
            if counts.taken - counts.left >= self.most {
                return Poll::Ready(Err(RequestError::Overloaded));
            }
            if !counts.waiting.iter().any(|it| it.will_wake(cx.waker())) {
                counts.waiting.push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        counts.taken += 1;
        drop(counts);
        Poll::Ready(Ok(Place {
            all: self.clone(),
            state: Mutex::default(),
        }))
    }

    /// A place is free; or is not one of those that are about to become free.
    fn change(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = lock(&self.counts);
        change(&mut counts);
        let waiting = std::mem::take(&mut counts.waiting);
        drop(counts);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Place {
    /// Nobody uses the connection any more.
    pub fn leave(&self) {
        let mut state = lock(&self.state);
        if !std::mem::replace(&mut state.is_left, true) && state.next.is_none() {
            lock(&self.all.counts).left += 1;
        }
    }

    /// Keeps the place for another connection, so that nobody else takes it in between.
    pub fn pass_on(&self) -> NextPlace {
        let passing = Arc::<Mutex<Passing>>::default();
        let mut state = lock(&self.state);
        let is_counted = state.is_left && state.next.is_none();
        state.next = Some(passing.clone());
        drop(state);
        if is_counted {
            self.all.change(|counts| counts.left -= 1);
        }
        NextPlace {
            all: self.all.clone(),
            passing,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
        let Some(next) = lock(&self.state).next.take() else {
            return self.all.change(|counts| {
                counts.taken -= 1;
                counts.left -= 1;
            });
        };
        let mut passing = lock(&next);
        passing.is_there = true;
        let (is_declined, waker) = (passing.is_declined, passing.waker.take());
        drop(passing);
        if is_declined {
            self.all.change(|counts| counts.taken -= 1);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Future for NextPlace {
    type Output = Place;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Place> {
        let mut passing = lock(&self.passing);
        if !passing.is_there {
            passing.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        passing.is_there = false;
        Poll::Ready(Place {
            all: self.all.clone(),
            state: Mutex::default(),
        })
    }
}

impl Drop for NextPlace {
    fn drop(&mut self) {
        let mut passing = lock(&self.passing);
        passing.is_declined = true;
        let is_there = std::mem::take(&mut passing.is_there);
        drop(passing);
        if is_there {
            self.all.change(|counts| counts.taken -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place that is passed on is nobody else's meanwhile, and is free if it is not wanted any more.
    #[test]
    fn a_place_that_is_passed_on_is_not_free_in_between() {
        let mut cx = Context::from_waker(Waker::noop());
        for (is_left, is_taken) in [(false, true), (true, true), (false, false), (true, false)] {
            let places = Places::new(1);
            let take = || places.poll_take(&Context::from_waker(Waker::noop()));
            let is_overloaded = || matches!(take(), Poll::Ready(Err(_)));
            let Poll::Ready(Ok(place)) = take() else {
                panic!("the first place");
            };
            if is_left {
                place.leave();
                assert!(take().is_pending(), "it is about to become free");
            }
            let mut next = place.pass_on();
            place.leave();
            assert!(is_overloaded());
            if is_taken {
                assert!(Pin::new(&mut next).poll(&mut cx).is_pending());
                drop(place);
                assert!(is_overloaded());
                let Poll::Ready(second) = Pin::new(&mut next).poll(&mut cx) else {
                    panic!("the place is there");
                };
                drop(next);
                assert!(is_overloaded());
                drop(second);
            } else if is_left {
                drop((place, next));
            } else {
                drop((next, place));
            }
            assert!(matches!(take(), Poll::Ready(Ok(_))), "{is_left} {is_taken}");
            let counts = lock(&places.counts);
            assert_eq!((counts.taken, counts.left), (0, 0), "{is_left} {is_taken}");
        }
    }
}
