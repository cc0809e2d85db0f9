//! Verifies the senders of requests on carriers that do not know them, where that takes time.
//!
//! ```text
//!   request ─▶ deferred ─▶ verifier ─▶ verdict ─▶ the same request, decided again
//! ```
//!
//! The request counts as in flight meanwhile, and its cancellation or the end of the connection ends the verification.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::admission::auth;
use crate::connection::{Call, Handle, Principal, Rejection};
use crate::handler::Job;
use crate::handler::guarded::{Outcome, guarded};
use crate::policy::{Credentials, Policy, TOO_SLOW};

/// The verification of a deferred request's sender, which has the request decided again.
pub(super) fn job(policy: &Arc<Policy>, handle: &Handle, call: Call) -> Job {
    let (policy, handle) = (policy.clone(), handle.clone());
    Box::pin(async move {
        let checks = policy.clone();
        let message = call.message.clone();
        let clock = handle.clone();
        let verdict = guarded(call.cancel.cancelled(), move || {
            let said = auth(&message.as_ref());
            let begun = Credentials::with_said(said, |brought| policy.begin_verification(brought));
            Box::pin(async move {
                let (verification, limit) = begun.ok_or(UNVERIFIED)?;
                let (mut verification, mut late) = (pin!(verification), pin!(clock.sleep(limit)));
                let verdict = poll_fn(|cx| match verification.as_mut().poll(cx) {
                    Poll::Pending => late.as_mut().poll(cx).map(|()| Err(TOO_SLOW)),
                    verdict => verdict,
                });
                verdict.await
            })
        });
        let verdict: Result<Principal, Rejection> = match verdict.await {
            Outcome::Made(verdict) => verdict.and_then(|who| checks.checked(who)),
            Outcome::Panicked => Err(UNVERIFIED),
            Outcome::Cancelled => return,
        };
        handle.decide(call, verdict);
    })
}

/// Why a request is not served whose sender nobody has verified.
pub(super) const UNVERIFIED: Rejection =
    Rejection::Unavailable(Cow::Borrowed("the sender is not verified"));
