//! Single-threaded tests of [`CancelToken`].

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::super::CancelToken;
use super::support::Woken;

#[test]
fn the_first_reason_stays() {
    let token = CancelToken::new();
    assert_eq!((token.is_cancelled(), token.reason()), (false, None));
    assert!(token.cancel(Some("user pressed stop")));
    assert!(!token.cancel(Some("deadline")));
    assert_eq!(
        (token.is_cancelled(), token.reason()),
        (true, Some("user pressed stop"))
    );
    let silent = CancelToken::new();
    assert!(silent.cancel(None));
    assert!(!silent.cancel(Some("too late")));
    assert_eq!((silent.is_cancelled(), silent.reason()), (true, None));
}

#[test]
fn every_waiter_is_woken_and_then_ready() {
    let token = CancelToken::new();
    let (woken, waker) = Woken::new();
    let mut cx = Context::from_waker(&waker);
    let mut waiters: Vec<_> = (0..5)
        .map(|_| Box::pin(token.clone().cancelled()))
        .collect();
    for waiter in &mut waiters {
        assert_eq!(waiter.as_mut().poll(&mut cx), Poll::Pending);
        assert_eq!(waiter.as_mut().poll(&mut cx), Poll::Pending);
    }
    token.cancel(None);
    assert_eq!(woken.count(), 5);
    for waiter in &mut waiters {
        assert_eq!(waiter.as_mut().poll(&mut cx), Poll::Ready(()));
    }
    assert_eq!(pin!(token.cancelled()).poll(&mut cx), Poll::Ready(()));
}

#[test]
fn a_dropped_waiter_leaves_nothing_behind() {
    let token = CancelToken::new();
    let (woken, waker) = Woken::new();
    for _ in 0..3 {
        let mut waiter = Box::pin(token.cancelled());
        assert!(
            waiter
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        // The token and the waiter keep one each.
        assert_eq!(Arc::strong_count(&woken), 4);
    }
    assert_eq!(Arc::strong_count(&woken), 2);
    token.cancel(None);
    assert_eq!(woken.count(), 0);
}

#[test]
fn children_follow_and_parents_do_not() {
    let parent = CancelToken::new();
    let (child, sibling) = (parent.child(), parent.child());
    let grandchild = child.child();
    let (woken, waker) = Woken::new();
    let mut waiter = pin!(grandchild.cancelled());
    assert!(
        waiter
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    child.cancel(Some("alone"));
    assert_eq!((woken.count(), grandchild.reason()), (1, Some("alone")));
    assert!(!parent.is_cancelled() && !sibling.is_cancelled());
    parent.cancel(Some("all"));
    assert_eq!(
        (sibling.reason(), child.reason()),
        (Some("all"), Some("alone"))
    );
    assert_eq!(parent.child().reason(), Some("all"), "born cancelled");
}

#[test]
fn a_long_chain_of_children_does_not_use_the_stack() {
    let root = CancelToken::new();
    let mut chain = vec![root.clone()];
    for _ in 0..if cfg!(miri) { 300 } else { 100_000 } {
        chain.push(chain.last().unwrap().child());
    }
    root.cancel(None);
    assert!(chain.iter().all(CancelToken::is_cancelled));
}

#[test]
fn dropped_children_are_forgotten() {
    let parent = CancelToken::new();
    for _ in 0..10_000 {
        drop(parent.child());
    }
    assert!(
        parent.children_len() <= 64,
        "{} kept",
        parent.children_len()
    );
}
