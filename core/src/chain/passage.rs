//! The way of one call to the servers of a front.

use std::sync::{Arc, Mutex};

use super::hop::{self, Terms};
use super::introduce;
use super::lane::Lane;
use super::lane_key::LaneKey;
use super::lanes::{Exclusive, may_be_asked};
use super::middleware::{ChainRequest, ChainResponse, refusal};
use super::parts::no_such_method;
use super::prefix;
use super::route::Route;
use super::shared::{Member, Shared};
use crate::error::RequestError;
use crate::mcp::code::INVALID_PARAMS;
use crate::mcp::{Era, Method};
use crate::sync::lock;

/// The connections that a call may take, one for each server.
pub(super) enum Way {
    /// Those of its client.
    Own(Arc<[Arc<Lane>]>),
    /// Those that it may share with others.
    Shared(LaneKey),
}

pub(super) struct Passage {
    pub shared: Arc<Shared>,
    pub way: Way,
    pub route: Arc<Route>,
    /// The connection that only this call uses, if it has one.
    pub exclusive: Mutex<Option<Exclusive>>,
    /// The connection of an earlier front that the call goes on at, if its client was asked there.
    pub resumes: Option<Arc<Lane>>,
}

impl Passage {
    /// Passes a request on to one server.
    pub async fn to(
        &self,
        member: &Member,
        request: ChainRequest,
    ) -> Result<ChainResponse, RequestError> {
        self.route.goes_to(&member.parts);
        let lane = self.lane(member, &request).await?;
        self.over(&lane, request).await
    }

    /// Passes a request on over one connection.
    pub async fn over(
        &self,
        lane: &Arc<Lane>,
        request: ChainRequest,
    ) -> Result<ChainResponse, RequestError> {
        // A server on HTTP is the same one for every connection.
        let may_ask = !lane.parts.external.is_of_requests
            && request.known_method().is_some_and(Method::may_ask);
        let answer = hop::pass(lane, &self.route, request, self.terms()).await?;
        if may_ask {
            self.shared.kept.note(lane, answer.result(), &self.route);
        }
        Ok(answer)
    }

    /// The terms of its requests.
    pub fn terms(&self) -> Terms<'_> {
        let key = match &self.way {
            Way::Own(_) => None,
            Way::Shared(key) => Some(key),
        };
        Terms {
            key,
            ..Terms::default()
        }
    }

    /// The server that a request is for, of several.
    ///
    /// # Errors
    /// If none has what the request names.
    pub fn member(&self, request: &ChainRequest) -> Result<&Member, RequestError> {
        let method = request.known_method();
        if !prefix::has_names(method) {
            let plain = self.shared.plain();
            return plain.ok_or_else(|| no_such_method(&request.method()));
        }
        let named = prefix::target(method, request.params());
        let missing = || refusal(INVALID_PARAMS, "the params name nothing");
        let (kind, outer) = named.ok_or_else(missing)?;
        self.shared.owner(kind, &outer).ok_or_else(|| {
            let why = format!("no server has {outer:?}: no prefix fits");
            prefix::unknown(kind, method, request.revision(), why)
        })
    }

    /// The connection to a server that a request takes.
    pub async fn lane(
        &self,
        member: &Member,
        request: &ChainRequest,
    ) -> Result<Arc<Lane>, RequestError> {
        let (parts, lanes) = (&member.parts, &member.lanes);
        let key = match &self.way {
            Way::Own(own) => {
                return own
                    .get(member.index())
                    .cloned()
                    .ok_or(RequestError::Overloaded);
            }
            Way::Shared(key) => key.clone().within(parts.external.isolation),
        };
        let may_ask = request.known_method().is_some_and(Method::may_ask)
            && may_be_asked(&key.capabilities)
            && key.principal.is_none();
        if may_ask && parts.era().is_none() {
            // Finds out the era of the server.
            let lane = lanes.shared(parts, key.clone())?;
            let patience = parts.external.limits.max_request_timeout;
            let patience = self.route.timers.sleep(patience);
            Box::pin(introduce::open(&lane, patience)).await?;
        }
        if !may_ask || parts.era() == Some(Era::Stateless) {
            return lanes.shared(parts, key);
        }
        let one = lanes.exclusive(parts, key)?;
        let lane = one.lane().cloned().ok_or(RequestError::Overloaded);
        *lock(&self.exclusive) = Some(one);
        lane
    }
}
