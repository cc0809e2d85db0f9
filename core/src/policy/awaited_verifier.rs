//! Verification that takes time, such as a question to an authorization server.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use super::verifier::{Credentials, FAILED};
use crate::connection::{Principal, Rejection};
use crate::limits::MAX_VERIFICATIONS;
use crate::panics::contain;

type Verifying = Pin<Box<dyn Future<Output = Result<Principal, Rejection>> + Send>>;

const VERIFIER: &str = "a verifier";

/// The verdict on credentials whose verification was not over in time.
pub(crate) const TOO_SLOW: Rejection = Rejection::Unavailable(Cow::Borrowed(
    "the verification of the credentials took too long",
));

const TOO_MANY: Rejection = Rejection::Unavailable(Cow::Borrowed(
    "too many credentials are being verified; try again later",
));

/// The callback that begins to verify credentials.
#[derive(Clone)]
pub(super) struct AwaitedVerifier {
    verify: Arc<dyn Fn(&Credentials<'_>) -> Verifying + Send + Sync>,
    /// Number of verifications in progress.
    running: Arc<AtomicUsize>,
}

impl AwaitedVerifier {
    pub fn new<F, E>(verify: impl Fn(&Credentials<'_>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Principal, E>> + Send + 'static,
        E: Into<Rejection>,
    {
        Self {
            verify: Arc::new(move |credentials| {
                let begun = verify(credentials);
                Box::pin(async move { begun.await.map_err(Into::into) })
            }),
            running: Arc::default(),
        }
    }

    pub fn begin(&self, credentials: &Credentials<'_>) -> Verification {
        let place = Place::taken(&self.running);
        let begin = |_: &Place| contain(VERIFIER, || (self.verify)(credentials));
        Verification {
            verifying: place.as_ref().and_then(begin),
            place,
        }
    }
}

impl fmt::Debug for AwaitedVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwaitedVerifier(..)")
    }
}

/// One of [`MAX_VERIFICATIONS`] places.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn taken(running: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(running.clone());
        (running.fetch_add(1, Ordering::Relaxed) < MAX_VERIFICATIONS).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A verification in progress: the principal, or why the credentials are not accepted. After a panic there is no
/// verdict.
pub(crate) struct Verification {
    verifying: Option<Verifying>,
    /// `None` if all places were taken.
    place: Option<Place>,
}

impl Future for Verification {
    type Output = Result<Principal, Rejection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let verifying = self.verifying.as_mut();
        let polled = verifying.and_then(|it| contain(VERIFIER, || it.as_mut().poll(cx)));
        polled.unwrap_or_else(|| {
            self.end();
            Poll::Ready(Err(match self.place {
                Some(_) => FAILED,
                None => TOO_MANY,
            }))
        })
    }
}

impl Verification {
    /// A verification that is over.
    #[cfg(feature = "resource-server")]
    pub fn over(verdict: Result<Principal, Rejection>) -> Self {
        Self {
            verifying: Some(Box::pin(std::future::ready(verdict))),
            place: None,
        }
    }

    /// Drops the future, which may panic, too.
    fn end(&mut self) {
        let verifying = self.verifying.take();
        contain(VERIFIER, || drop(verifying));
    }
}

impl Drop for Verification {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn polled(verification: &mut Verification) -> Poll<Result<Principal, Rejection>> {
        Pin::new(verification).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn verifications_are_bounded_and_one_that_ends_makes_room() {
        let verifier = AwaitedVerifier::new(|_| std::future::pending::<Result<_, String>>());
        let begin = || verifier.begin(&Credentials::None);
        let mut running: Vec<_> = (0..MAX_VERIFICATIONS).map(|_| begin()).collect();
        assert!(running.iter_mut().all(|one| polled(one).is_pending()));
        let refused = |polled| matches!(polled, Poll::Ready(Err(why)) if why == TOO_MANY);
        let (mut beyond, mut again) = (begin(), begin());
        assert!(refused(polled(&mut beyond)) && refused(polled(&mut again)));
        drop((beyond, again));
        running.pop();
        assert!(polled(&mut begin()).is_pending());
    }
}
