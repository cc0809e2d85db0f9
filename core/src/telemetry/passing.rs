//! Requests that a front passes on. The host begins their spans before they go on, so that the server is told of the right one.
//!
//! ```text
//!   a request has come to a front ─▶ Passing, among the records
//!   the host begins two spans: of the request, and of the one by which it is passed on ─▶ HostTelemetry::passed
//!   the request goes on; the first one that is sent for it with that method has the second span, further ones are below the first
//! ```

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::host::HostTelemetry;
use super::hosted::HostedRequest;
use super::records::Passing;
use crate::chain::{ChainAnswer, ChainRequest, Middleware, NextHop, RelayDirection};
use crate::mcp::TraceContext;

/// Where the two spans are. The key of the second is taken when the request is sent.
#[derive(Debug)]
pub(super) struct Begun {
    own: TraceContext,
    sent: Option<(u64, TraceContext)>,
}

/// How a request is sent for one that arrived.
pub(super) enum Passed {
    /// With a span that has begun.
    By(u64, TraceContext),
    /// Below the span of the one that arrived.
    Within(TraceContext),
}

impl Begun {
    pub fn pass(&mut self, is_alike: bool) -> Passed {
        match self.sent.take_if(|_| is_alike) {
            Some((key, context)) => Passed::By(key, context),
            None => Passed::Within(self.own.clone()),
        }
    }

    /// The key of the second span, if no request was sent with it.
    pub fn unsent(self) -> Option<u64> {
        self.sent.map(|(key, _)| key)
    }
}

/// A request that waits for the host.
#[derive(Debug)]
pub(super) struct Held {
    request: Arc<HostedRequest>,
    sent: u64,
    waker: Option<Waker>,
}

impl HostTelemetry {
    /// Says where the spans are that the host has begun for the request whose own span has that key: that span, and the one of the request
    /// by which it is passed on; `None` if there are no spans. Returns whether the second one will end; otherwise the request is over.
    pub fn passed(&self, key: u64, places: Option<[TraceContext; 2]>) -> bool {
        let Some(held) = self.held().remove(&key) else {
            return false;
        };
        let is_awaited = places.is_some_and(|[own, sent]| {
            let sent = Some((held.sent, sent));
            held.request.has_begun(Begun { own, sent })
        });
        if let Some(waker) = held.waker {
            waker.wake();
        }
        is_awaited
    }

    /// Has the host begin the spans of the request whose scope surrounds this thread. `None` if it is not asked.
    fn passing(&self) -> Option<Waiting<'_>> {
        let request = self.current()?;
        if !request.begins() {
            return None;
        }
        let (own, sent) = (request.span(), request.passed_on(self.key()));
        let key = own.key;
        let held = Held {
            request,
            sent: sent.key,
            waker: None,
        };
        self.held().insert(key, held);
        let passes = [own, sent];
        self.ask(key, Passing { passes });
        Some(Waiting {
            telemetry: self,
            key,
        })
    }
}

/// Ready once the host has begun the spans.
struct Waiting<'a> {
    telemetry: &'a HostTelemetry,
    key: u64,
}

impl Future for Waiting<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.telemetry.held().get_mut(&self.key) {
            None => Poll::Ready(()),
            Some(held) => {
                held.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.telemetry.held().remove(&self.key);
    }
}

/// The first middleware of a front whose observer this is: a request waits until the host has begun its spans, unless it is only for the
/// server that the front stands for.
impl Middleware for HostTelemetry {
    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        if request.direction() == RelayDirection::ToClient || next.is_own(&request) {
            return next.run(request);
        }
        Box::pin(async move {
            if let Some(begun) = self.passing() {
                begun.await;
            }
            next.run(request).await
        })
    }
}
