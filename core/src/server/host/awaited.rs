//! Asks others before a request is decided: about its sender, on carriers that do not know it and where verification takes
//! time, and about its limits, where they are counted on a store.
//!
//! ```text
//!   request ─▶ deferred ─▶ verifier ─▶ store ─▶ the same request, decided again
//! ```
//!
//! The request counts as in flight meanwhile, and its cancellation or the end of the connection ends the job.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::admission::{Known, UNVERIFIED, auth, is_allowed_call, request_of};
use crate::connection::{Awaited, Call, Handle, Principal, Rejection, RequestSource};
use crate::handler::Job;
use crate::handler::guarded::{Outcome, guarded};
use crate::policy::{Credentials, Policy, TOO_SLOW};
use crate::server::registry::Registry;

/// The job of a deferred request that came `from` there, which has the request decided again.
pub(super) fn job(
    registry: &Arc<Registry>,
    handle: &Handle,
    from: RequestSource,
    known: Result<Known<'static>, Rejection>,
    call: Call,
) -> Job {
    let (registry, handle) = (registry.clone(), handle.clone());
    Box::pin(async move {
        let Some(policy) = registry.policy() else {
            return handle.decide(call, NOTHING);
        };
        let settled = known.map(|known| known.settled(&registry));
        let sender = match settled {
            Ok(Some(sender)) => sender,
            Err(rejection) => Err(rejection),
            Ok(None) => match verify(policy, &handle, &call).await {
                Outcome::Made(verdict) => verdict.map(Some),
                Outcome::Panicked => Err(UNVERIFIED),
                Outcome::Cancelled => return,
            },
        };
        let counted = match policy.counts_elsewhere(call.method) {
            false => None,
            true => {
                let who = sender.as_ref().ok().and_then(Option::as_ref);
                let client = from.or_principal(who);
                let is_call =
                    sender.is_ok() && is_allowed_call(&registry, policy, &request_of(&call), who);
                let registry = registry.clone();
                let counting = guarded(call.cancel.cancelled(), move || {
                    Box::pin(async move { registry.policy()?.count(&client, is_call).await })
                });
                match counting.await {
                    Outcome::Made(counted) => counted,
                    Outcome::Panicked => None,
                    Outcome::Cancelled => return,
                }
            }
        };
        handle.decide(call, Awaited { sender, counted });
    })
}

/// Verifies the credentials in a message, if that takes time for a limited one.
fn verify(
    policy: &Arc<Policy>,
    handle: &Handle,
    call: &Call,
) -> impl Future<Output = Outcome<Result<Principal, Rejection>>> + Send + use<> {
    let (policy, clock, message) = (policy.clone(), handle.clone(), call.message.clone());
    guarded(call.cancel.cancelled(), move || {
        let said = auth(&message.as_ref());
        if !policy.verifies_later() {
            let verdict = Credentials::with_said(said, |brought| policy.verify(brought));
            return Box::pin(std::future::ready(verdict));
        }
        let begun = Credentials::with_said(said, |brought| policy.begin_verification(brought));
        Box::pin(async move {
            let (verification, limit) = begun.ok_or(UNVERIFIED)?;
            let (mut verification, mut late) = (pin!(verification), pin!(clock.sleep(limit)));
            let verdict = poll_fn(|cx| match verification.as_mut().poll(cx) {
                Poll::Pending => late.as_mut().poll(cx).map(|()| Err(TOO_SLOW)),
                verdict => verdict,
            });
            policy.checked(verdict.await?)
        })
    })
}

/// What is known where nobody is asked.
const NOTHING: Awaited = Awaited {
    sender: Err(UNVERIFIED),
    counted: None,
};
