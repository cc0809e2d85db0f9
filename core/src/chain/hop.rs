//! The hop to one server, behind its middleware: over which connection a request goes, and until when its answer is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::far::{Far, FarSession};
use super::lane::Lane;
use super::lane_key::LaneKey;
use super::middleware::{
    Bound, ChainAnswer, ChainRequest, ChainResponse, Line, NextHop, RelayDirection,
};
use super::params;
use super::parts::no_such_method;
use super::route::Route;
use super::trip::Trip;
use super::unless::unless;
use crate::correlate::CancelToken;
use crate::error::{CarrierError, PeerError, RequestError};
use crate::json::reader;
use crate::mcp::code::INVALID_REQUEST;
use crate::mcp::{Era, Method};

/// What a request to one server is subject to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms<'a> {
    /// The client, if it has no connection of its own.
    pub key: Option<&'a LaneKey>,
    /// The capability of the servers that it is for, when others are asked, too.
    pub capability: Option<&'a str>,
    /// Cancelled when the server is late: then the request fails, behind the middleware of the server.
    pub late: Option<&'a CancelToken>,
}

/// Passes a request on by the server's own names, and the answer by those of clients.
pub(super) async fn pass(
    lane: &Arc<Lane>,
    route: &Arc<Route>,
    mut request: ChainRequest,
    terms: Terms<'_>,
) -> Result<ChainResponse, RequestError> {
    let method = request.known_method();
    if let Some(prefix) = &lane.parts.prefix {
        prefix.enter(&mut request)?;
    }
    let unopened = AtomicU64::new(0);
    let hop = Hop {
        lane,
        route,
        terms,
        only: None,
        unopened: &unopened,
    };
    let answer = match &lane.parts.external.middleware[..] {
        [] => hop.exchange(request).await?,
        all => {
            let next = NextHop::over(all, RelayDirection::ToServer, hop);
            next.of(route.clone()).run(request).await?
        }
    };
    let freshness = answer.freshness();
    Ok(match &lane.parts.prefix {
        Some(prefix) => prefix.leave(method, answer).with(freshness),
        None => answer,
    })
}

/// The hop to a server, behind the middleware.
#[derive(Clone)]
struct Hop<'a> {
    lane: &'a Arc<Lane>,
    route: &'a Arc<Route>,
    terms: Terms<'a>,
    /// The only connection that a request may take, within that session.
    only: Option<(Far, FarSession)>,
    /// The attempt to connect for want of which the last request has failed, or 0.
    unopened: &'a AtomicU64,
}

impl<'a> Line<'a> for Hop<'a> {
    fn send(&self, request: ChainRequest) -> ChainAnswer<'a> {
        Box::pin(self.clone().exchange(request))
    }

    fn bound(&self) -> Bound<'a> {
        let mut hop = self.clone();
        Box::pin(async move {
            let far = hop.far().await?;
            let session = far.session();
            let number = session.number;
            hop.only = Some((far, session));
            Ok(Some((number, Arc::new(hop) as _)))
        })
    }

    fn unopened(&self) -> Option<u64> {
        let attempt = self.unopened.load(Ordering::Relaxed);
        Some(attempt).filter(|attempt| *attempt > 0)
    }
}

impl<'a> Hop<'a> {
    /// The connection, opened if need be: for as long as a request may take in total, as a server may accept one and say nothing.
    ///
    /// # Errors
    /// Why it cannot be opened.
    async fn far(&self) -> Result<Far, RequestError> {
        let only = self.only.as_ref().map(|(far, _)| far.clone());
        if let Some(far) = only.or_else(|| self.lane.ready()) {
            return Ok(far);
        }
        let patience = self.lane.parts.external.limits.max_request_timeout;
        let sleep = self.route.timers.sleep(patience);
        let late = async {
            match self.terms.late {
                None => sleep.await,
                Some(late) => unless(sleep, late.cancelled()).await.unwrap_or_default(),
            }
        };
        Box::pin(self.lane.far(late)).await.map_err(|why| {
            let attempt = why.attempt.unwrap_or(0);
            self.unopened.store(attempt, Ordering::Relaxed);
            why.error
        })
    }

    /// Sends a request to the server and waits for the answer, until the server is late.
    async fn exchange(self, request: ChainRequest) -> Result<ChainResponse, RequestError> {
        self.unopened.store(0, Ordering::Relaxed);
        let Some(late) = self.terms.late else {
            return self.ask(request).await;
        };
        let asked: ChainAnswer<'a> = Box::pin(self.ask(request));
        let answer = unless(asked, late.cancelled()).await;
        answer.unwrap_or(Err(RequestError::TimedOut))
    }

    async fn ask(self, request: ChainRequest) -> Result<ChainResponse, RequestError> {
        let (lane, route) = (self.lane, self.route);
        let hops = params::hops(&request.view()) + 1;
        if hops > lane.parts.max_hops {
            return Err(RequestError::Peer(PeerError {
                code: INVALID_REQUEST,
                message: "the request has passed too many hops: the chain may lead back to itself"
                    .into(),
                data: Some("{\"reason\":\"too_many_hops\"}".into()),
            }));
        }
        let far = self.far().await?;
        if far.revision.era() == Era::Handshake && !lane.speaks_for(self.terms.key) {
            // It waited while the server became one of that era; the next one takes another connection.
            return Err(CarrierError::session_lost().into());
        }
        let lacks = |capability| !far.offers(capability);
        if self.terms.capability.is_some_and(lacks) {
            return Err(no_such_method(&request.method()));
        }
        let method = request.known_method();
        let trip = Trip {
            lane,
            far: &far,
            route,
            request: &request,
            method,
            hops,
            within: self.only.as_ref().map(|(_, session)| session.number),
        };
        let answer = match &self.only {
            None => trip.make().await,
            Some((_, FarSession { ended, .. })) if !ended.is_cancelled() => {
                let answer = Box::pin(unless(trip.make(), ended.cancelled())).await;
                answer.unwrap_or_else(|| Err(CarrierError::session_lost().into()))
            }
            Some(_) => Err(CarrierError::session_lost().into()),
        };
        if let (Some(Method::ListTools), Ok(page)) = (method, &answer) {
            let tools = reader::find(page.result(), "tools").unwrap_or("[]");
            far.client.note_tools(tools);
        }
        answer
    }
}
