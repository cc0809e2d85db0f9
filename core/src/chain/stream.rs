//! The begin and the end of a stream of changes, towards its client.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use super::middleware::{ChainNotification, ChainResponse, RelayDirection, notify};
use super::parts::Parts;
use super::route::Route;
use crate::connection::ReplyTo;
use crate::error::RequestError;
use crate::mcp::{Method, meta};

/// The params that acknowledge a stream with what is granted.
pub(super) fn acknowledgement(granted: &str, reply: &ReplyTo) -> String {
    let id = reply.id().raw();
    format!(
        "{{\"notifications\":{granted},\"_meta\":{{\"{}\":{id}}}}}",
        meta::SUBSCRIPTION_ID
    )
}

/// Acknowledges a stream of several servers (R-SUB-02).
pub(super) async fn acknowledge(
    parts: &Parts,
    route: &Route,
    granted: &str,
) -> Result<(), RequestError> {
    let Some((front, reply)) = route.reply() else {
        return Err(RequestError::Cancelled(None));
    };
    let name = Method::SubscriptionAcknowledged.name();
    let told = acknowledgement(granted, &reply);
    let told = ChainNotification::new(RelayDirection::ToClient, name, Some(&told));
    if let Some(shown) = notify(&parts.middleware, told).await {
        let mut replies = front.replies();
        replies.notify(&reply, &shown.method, shown.params.as_deref());
    }
    Ok(())
}

/// Completes when the front ends the stream in good order, or with an error when its client has cancelled it.
pub(super) async fn over(route: &Route) -> Result<(), RequestError> {
    let mut drained = route.ends.cancelled();
    poll_fn(|cx| {
        if route.poll_cancelled(cx).is_ready() {
            return Poll::Ready(Err(RequestError::Cancelled(None)));
        }
        Pin::new(&mut drained).poll(cx).map(Ok)
    })
    .await
}

/// The answer to a request that listens (R-SUB-09).
pub(super) fn ended_well(route: &Route) -> Result<ChainResponse, RequestError> {
    let (_, reply) = route.reply().ok_or(RequestError::Cancelled(None))?;
    let id = reply.id().raw();
    Ok(ChainResponse::new(format!(
        "{{\"resultType\":\"complete\",\"_meta\":{{\"{}\":{id}}}}}",
        meta::SUBSCRIPTION_ID
    )))
}
