//! The begin and the end of a stream of changes, towards its client.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use super::middleware::{ChainNotification, ChainResponse, RelayDirection, notify};
use super::parts::Parts;
use super::route::Route;
use crate::error::RequestError;
use crate::mcp::{Method, meta};

/// Acknowledges a stream with what is granted, and tells what was held. Returns whether that is all (R-SUB-02).
pub(super) async fn acknowledge(parts: &Parts, route: &Route, granted: &str) -> bool {
    let Some((_, reply)) = route.reply() else {
        return true;
    };
    let (id, name) = (reply.id().raw(), Method::SubscriptionAcknowledged.name());
    let told = format!(
        "{{\"notifications\":{granted},\"_meta\":{{\"{}\":{id}}}}}",
        meta::SUBSCRIPTION_ID
    );
    let told = ChainNotification::new(RelayDirection::ToClient, name, Some(&told));
    let shown = notify(&parts.middleware, told).await;
    let shown = shown.as_ref();
    route.acknowledge(shown.map(|it| (&*it.method, it.params.as_deref().unwrap_or("{}"))))
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
