//! Verification that takes time, such as a question to an authorization server.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::verifier::Credentials;
use crate::connection::Principal;
use crate::panics::contain;

type Verifying = Pin<Box<dyn Future<Output = Result<Principal, String>> + Send>>;

const VERIFIER: &str = "a verifier";

/// Why credentials are refused whose verification was not over in time.
pub(crate) const TOO_SLOW: &str = "the verification of the credentials took too long";

/// The callback that begins to verify credentials.
#[derive(Clone)]
pub(super) struct AwaitedVerifier(Arc<dyn Fn(&Credentials<'_>) -> Verifying + Send + Sync>);

impl AwaitedVerifier {
    pub fn new<F>(verify: impl Fn(&Credentials<'_>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Principal, String>> + Send + 'static,
    {
        Self(Arc::new(move |credentials| Box::pin(verify(credentials))))
    }

    pub fn begin(&self, credentials: &Credentials<'_>) -> Verification {
        Verification(contain(VERIFIER, || (self.0)(credentials)))
    }
}

impl fmt::Debug for AwaitedVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwaitedVerifier(..)")
    }
}

/// A verification in progress: the principal, or why the credentials are refused. A panic refuses them.
pub(crate) struct Verification(Option<Verifying>);

impl Future for Verification {
    type Output = Result<Principal, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let verifying = self.0.as_mut();
        let polled = verifying.and_then(|it| contain(VERIFIER, || it.as_mut().poll(cx)));
        polled.unwrap_or_else(|| {
            self.end();
            Poll::Ready(Err("the verification of the credentials failed".into()))
        })
    }
}

impl Verification {
    /// Drops the future, which may panic, too.
    fn end(&mut self) {
        let verifying = self.0.take();
        contain(VERIFIER, || drop(verifying));
    }
}

impl Drop for Verification {
    fn drop(&mut self) {
        self.end();
    }
}
