//! One request on its way to a server, and its answer: in the same era byte for byte (R-CHN-10), and between the eras
//! translated (R-CHN-12, R-CHN-13).

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::behalf::{Behalf, ask};
use super::declared::answers;
use super::far::Far;
use super::lane::Lane;
use super::lanes::may_be_asked;
use super::list_cache::{Freshness, is_kept};
use super::middleware::{
    ChainAnswer, ChainRequest, ChainResponse, NextHop, RelayDirection, refusal,
};
use super::params::{self, Edit};
use super::parts::no_such_method;
use super::question::{PATIENCE, UNKNOWN_STATE};
use super::route::Route;
use super::sessions::Session;
use super::unless::unless;
use super::{asking, doubts, follow, listen, translate, url_elicitation};
use crate::connection::{self, Principal, RequestOptions};
use crate::error::{PeerError, RequestError};
use crate::json::reader;
use crate::mcp::code::{INVALID_PARAMS, URL_ELICITATION_REQUIRED};
use crate::mcp::{Era, LogLevel, Method, Side, TraceContext, meta};

/// Rounds of one call after which its server is taken to ask for ever (R-MRT-12).
const MAX_ROUNDS: usize = 10;

/// Why such a call fails.
const ENDLESS: &str = "the server asks for more in every round";

/// A request on its way to the server.
pub(super) struct Trip<'a> {
    pub lane: &'a Arc<Lane>,
    pub far: &'a Far,
    pub route: &'a Arc<Route>,
    pub request: &'a ChainRequest,
    pub method: Option<Method>,
    pub hops: u64,
    /// The only session of the server that it may go to, if it may not go to any.
    pub within: Option<u64>,
}

impl Trip<'_> {
    /// Sends the request, and translates between the eras.
    pub async fn make(&self) -> Result<ChainResponse, RequestError> {
        match (self.request.revision.era(), self.far.revision.era()) {
            (Era::Handshake, Era::Stateless) => Box::pin(self.to_newer()).await,
            (Era::Stateless, Era::Handshake) => Box::pin(self.to_older()).await,
            _ => self.to_same().await,
        }
    }

    /// Within an era.
    async fn to_same(&self) -> Result<ChainResponse, RequestError> {
        self.require()?;
        let edit = Edit {
            drop: self.own(false),
            ..Edit::default()
        };
        let session = self.session();
        if let Some(session) = session.as_ref().filter(|_| self.lane.is_shared())
            && let Some(answer) = Box::pin(self.kept_apart(session, edit)).await
        {
            return answer;
        }
        let sent = self.send(edit, self.patience());
        let sent = match self.method {
            Some(Method::Listen) => unless(sent, self.route.ends.cancelled()).await,
            _ => Some(sent.await),
        };
        // The stream ends in good order, with this side.
        let complete = || Ok((ChainResponse::new("{\"resultType\":\"complete\"}"), Some(0)));
        let sent = sent.unwrap_or_else(complete);
        if let (Some(session), Err(RequestError::Peer(error))) = (&session, &sent)
            && error.code == URL_ELICITATION_REQUIRED
        {
            let pages = url_elicitation::pages(error);
            pages.for_each(|page| session.elicited(page));
        }
        let (response, id) = sent?;
        if let Some(session) = session {
            follow::note(&session, self.request, self.method, self.who());
            if self.method == Some(Method::SetLevel) {
                follow::note_level(&session, self.request);
            }
        }
        let own = self
            .route
            .reply()
            .filter(|_| self.method == Some(Method::Listen));
        match own {
            // R-SUB-04: the id is that of the client's request.
            Some((_, reply)) if id.is_some() => {
                let id = reply.id().raw();
                let result = params::with_meta(response.result(), meta::SUBSCRIPTION_ID, Some(id));
                Ok(ChainResponse::new(result))
            }
            _ => Ok(response),
        }
    }

    /// What one session that shares the connection asks for itself is not what the others get (R-CHN-07); `None` if the request
    /// is passed on as any other.
    async fn kept_apart(
        &self,
        session: &Session,
        edit: Edit<'_>,
    ) -> Option<Result<ChainResponse, RequestError>> {
        let method = self.method?;
        let uri = || follow::uri(self.request);
        let done = || ChainResponse::new("{}");
        Some(match method {
            Method::SetLevel if reader::find(self.far.capabilities(), "logging").is_none() => {
                Err(no_such_method(method.name()))
            }
            Method::SetLevel => self.set_level().inspect(|_| {
                if let Some(level) = *crate::sync::lock(&session.level) {
                    self.agree(level);
                }
            }),
            Method::Subscribe => {
                let added =
                    uri().and_then(|uri| Ok((follow::add(session, &uri, self.who())?, uri)));
                let (before, uri) = match added {
                    Ok(added) => added,
                    Err(error) => return Some(Err(error)),
                };
                let sent = self.send(edit, None).await;
                if sent.is_err() && before.is_none() {
                    crate::sync::lock(&session.subscribed).remove(&uri);
                }
                sent.map(|(answer, _)| answer)
            }
            Method::Unsubscribe => {
                follow::note(session, self.request, self.method, self.who());
                match uri().map(|uri| listen::is_wanted(self.lane, self.far, &uri)) {
                    Ok(true) => Ok(done()),
                    Ok(false) => return None,
                    Err(error) => Err(error),
                }
            }
            // Anybody could see and end the tasks of all.
            Method::ListTasks | Method::GetTask | Method::CancelTask | Method::TaskResult => {
                Err(no_such_method(method.name()))
            }
            _ => return None,
        })
    }

    /// The verified client.
    fn who(&self) -> &Option<Principal> {
        &self.route.principal
    }

    /// The session of the client, if it has one.
    fn session(&self) -> Option<Arc<Session>> {
        let is_session = self.request.revision.era() == Era::Handshake;
        let session = self.route.sessions.get(self.lane.parts.index);
        session.filter(|_| is_session).cloned()
    }

    /// From a client of the stateless era to a server of the handshake era.
    async fn to_older(&self) -> Result<ChainResponse, RequestError> {
        match self.method {
            Some(Method::Listen) => {
                return listen::serve(self.lane, self.far, self.route, self.request).await;
            }
            Some(Method::Discover) => return Ok(ChainResponse::new("{}")),
            _ => self.require()?,
        }
        if self.method.is_some_and(Method::may_ask)
            && reader::find(self.request.params(), "requestState").is_some()
        {
            // Such a server gives out no states.
            return Err(refusal(INVALID_PARAMS, UNKNOWN_STATE));
        }
        let level = self
            .route
            .reply()
            .and_then(|(_, reply)| reply.log_level().flatten());
        if let Some(level) = level {
            self.agree(level);
        }
        let edit = Edit {
            drop: self.own(true),
            drop_params: &["requestState", "inputResponses"],
            ..Edit::default()
        };
        let may_ask =
            self.method.is_some_and(Method::may_ask) && may_be_asked(&self.lane.near.capabilities);
        for _ in 0..MAX_ROUNDS {
            let sent = match may_ask {
                // A call whose client is asked something stays open as long as the client may take.
                true => unless(self.send(edit, Some(PATIENCE)), self.silence())
                    .await
                    .unwrap_or(Err(RequestError::TimedOut)),
                false => self.send(edit, self.patience()).await,
            };
            match sent {
                Ok((response, _)) => {
                    let server = self.far.implementation();
                    let result = translate::newer_result(response.result(), self.method, server);
                    return Ok(ChainResponse::new(result));
                }
                Err(RequestError::Peer(error)) if error.code == URL_ELICITATION_REQUIRED => {
                    self.visit(&error).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(RequestError::BadAnswer(ENDLESS))
    }

    /// From a client of the handshake era to a server of the stateless era.
    async fn to_newer(&self) -> Result<ChainResponse, RequestError> {
        let session = self.session().ok_or(RequestError::Cancelled(None))?;
        match self.method {
            Some(Method::Subscribe) => {
                let uri = follow::uri(self.request)?;
                return follow::subscribe(self.lane, self.far, &session, &uri, self.who()).await;
            }
            Some(Method::Unsubscribe) => {
                let uri = follow::uri(self.request)?;
                return follow::unsubscribe(self.lane, self.far, &session, &uri).await;
            }
            Some(Method::SetLevel) => return self.set_level(),
            _ => self.require()?,
        }
        let client = session.handle.peer();
        let declared = client.map_or("{}", |client| &*client.capabilities);
        let mut members = self.far.handle().envelope().to_owned();
        if let Some(client) = client.filter(|_| self.lane.is_shared()) {
            // The connection speaks for others, too.
            members = translate::envelope(&members, client);
        }
        if let Some(level) = *crate::sync::lock(&session.level) {
            members = format!(
                "{members},\"{}\":{}",
                meta::LOG_LEVEL,
                params::json_text(level.name())
            );
        }
        let mut answers = String::new();
        for _ in 0..MAX_ROUNDS {
            let edit = Edit {
                drop: self.own(true),
                add: &members,
                drop_params: &["requestState", "inputResponses"],
                add_params: &answers,
                ..Edit::default()
            };
            let (response, _) = self.send(edit, self.patience()).await?;
            let kind = reader::find(response.result(), "resultType").and_then(reader::as_str);
            if kind.as_deref() != Some("input_required") {
                let result = translate::older_result(response.result());
                return Ok(ChainResponse::new(result).with(response.freshness()));
            }
            answers = self.gather(declared, response.result()).await?;
        }
        Err(RequestError::BadAnswer(ENDLESS))
    }

    /// Asks the client what the server wants to know; the params to add to the next round.
    async fn gather(&self, declared: &str, result: &str) -> Result<String, RequestError> {
        let mut out = Vec::new();
        let requests = reader::find(result, "inputRequests").unwrap_or("{}");
        for (key, request) in reader::members(requests) {
            let method = reader::find(request, "method").and_then(reader::as_str);
            let method = method.ok_or(RequestError::BadAnswer("a question without a method"))?;
            if !answers(declared, Method::parse(&method)) {
                let why = "a question that the client has not declared to answer";
                return Err(RequestError::BadAnswer(why));
            }
            let params = reader::find(request, "params").unwrap_or("{}");
            if translate::is_page(Method::parse(&method), params) {
                url_elicitation::require(declared, Era::Handshake)?;
            }
            let question = ChainRequest::question(&method, params, self.far.revision)?;
            let answer = self.ask(question).await?;
            out.extend_from_slice(if out.is_empty() {
                b"\"inputResponses\":{\""
            } else {
                b",\""
            });
            out.extend_from_slice(key.raw().as_bytes());
            out.extend_from_slice(b"\":");
            out.extend_from_slice(answer.result().as_bytes());
        }
        if !out.is_empty() {
            out.push(b'}');
        }
        if let Some(state) = reader::find(result, "requestState") {
            if !out.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(b"\"requestState\":");
            // R-MRT-06: byte for byte.
            out.extend_from_slice(state.as_bytes());
        }
        match out.is_empty() {
            true => Err(RequestError::BadAnswer("a question that asks nothing")),
            false => Ok(String::from_utf8(out).unwrap_or_default()),
        }
    }

    /// Asks the client a question of the server, through the middleware.
    async fn ask(&self, question: ChainRequest) -> Result<ChainResponse, RequestError> {
        let Some((front, reply)) = self.route.reply() else {
            return Err(RequestError::Cancelled(None));
        };
        let (front, reply) = (&front, &reply);
        let send = move |question: ChainRequest| -> ChainAnswer<'_> {
            Box::pin(asking::by_request(front, reply, question))
        };
        let middleware = &self.lane.parts.middleware;
        NextHop::new(middleware, RelayDirection::ToClient, send)
            .run(question)
            .await
    }

    /// Sends the request, with its own id and token, and waits. Also returns the request's id.
    async fn send(
        &self,
        edit: Edit<'_>,
        patience: Option<Duration>,
    ) -> Result<(ChainResponse, Option<u64>), RequestError> {
        let (view, mut registered, mut id) = (self.request.view(), None, None);
        let options = RequestOptions {
            timeout: patience,
            max_timeout: patience,
            ..RequestOptions::default()
        };
        let write =
            |out: &mut Vec<u8>, key: crate::correlate::RequestKey, trace: Option<&TraceContext>| {
                id = Some(key.get());
                registered = Some(self.far.routes().register(key, self.route, self.within));
                let edit = Edit {
                    token: id,
                    hops: Some(self.hops),
                    trace,
                    ..edit
                };
                edit.append(out, &view);
            };
        let method = view.method().unwrap_or_default();
        let request = (&*method, view.params());
        let response = self.far.handle().forward(request, (options, true), write)?;
        let answer = self.or_cancelled(response).await;
        match (registered, &answer) {
            (Some(registered), Ok(_) | Err(RequestError::Peer(_))) => registered.answered(),
            (given_up, _) => drop(given_up),
        }
        if let Err(error) = &answer {
            doubts::note(self.lane, self.far, error);
        }
        match answer {
            Ok(message) => {
                let answer = ChainResponse::from(message);
                let is_kept = is_kept(self.method) && self.far.revision.era() == Era::Stateless;
                let freshness =
                    is_kept.then(|| Freshness::of(answer.result(), std::time::Instant::now()));
                Ok((answer.with(freshness), id))
            }
            Err(RequestError::Peer(error)) => Err(RequestError::Peer(PeerError {
                code: translate::code(&error, self.far.revision, self.route.revision),
                ..error
            })),
            Err(error) => Err(error),
        }
    }

    /// The answer, unless the client cancels the call first: then the peer is told, with the client's reason.
    async fn or_cancelled(
        &self,
        response: connection::Response,
    ) -> Result<crate::message::Message, RequestError> {
        let mut response = Some(response);
        poll_fn(|cx| {
            if let Some(waiting) = &mut response
                && let Poll::Ready(answer) = Pin::new(waiting).poll(cx)
            {
                return Poll::Ready(answer);
            }
            let reason = std::task::ready!(self.route.poll_cancelled(cx));
            if let Some(waiting) = response.take() {
                waiting.cancel(reason.as_deref());
            }
            Poll::Ready(Err(RequestError::Cancelled(reason)))
        })
        .await
    }

    /// Completes when the server has said nothing about the call for as long as it may take to answer, and for no longer than
    /// twice that, while no question waits for the client.
    async fn silence(&self) {
        let far = self.far.handle();
        let mut before = self.route.signs();
        loop {
            far.sleep(far.config().limits.request_timeout).await;
            if far.is_closed() {
                // The request ends with the connection, and so does every wait.
                return std::future::pending().await;
            }
            let now = self.route.signs();
            if now == before && !now.1 {
                return;
            }
            before = now;
        }
    }

    /// How long to wait for the answer; `None` for the limit of the connection.
    fn patience(&self) -> Option<Duration> {
        let is_long = matches!(self.method, Some(Method::Listen | Method::TaskResult));
        is_long.then_some(Duration::MAX)
    }

    /// The members of `_meta` that stay on this side.
    fn own(&self, crosses_eras: bool) -> &'static [&'static str] {
        params::own(crosses_eras)
    }

    /// Checks that the server's revision has the method.
    fn require(&self) -> Result<(), RequestError> {
        match self.method {
            Some(method) if !method.defined(self.far.revision, Side::Client) => {
                Err(no_such_method(method.name()))
            }
            _ => Ok(()),
        }
    }

    /// R-LOG-07: the session has the least severe level of all its requests. Each request gets what it asked for.
    fn agree(&self, level: LogLevel) {
        let has_logging = reader::find(self.far.capabilities(), "logging").is_some();
        let is_lower = {
            let mut agreed = crate::sync::lock(self.far.level());
            let is_lower = agreed.is_none_or(|agreed| level < agreed);
            if is_lower {
                *agreed = Some(level);
            }
            is_lower
        };
        if has_logging && is_lower {
            let params = format!("{{\"level\":{}}}", params::json_text(level.name()));
            let ways = (self.far.handle(), self.far.routes());
            let isolation = self.lane.isolation();
            let behalf = Behalf::of_all(isolation, || self.who().clone());
            let request = (Method::SetLevel, &*params);
            if let Ok(asked) = ask(ways, &behalf, request, RequestOptions::default()) {
                crate::handler::driven::drive(Box::pin(async move { drop(asked.await) }));
            }
        }
    }

    /// R-LOG-07: the level of the session becomes that of each request.
    fn set_level(&self) -> Result<ChainResponse, RequestError> {
        let level = params::log_level(self.request.params());
        let level = level.ok_or_else(|| refusal(INVALID_PARAMS, "unknown log level"))?;
        if let Some(session) = self.session() {
            *crate::sync::lock(&session.level) = Some(level);
        }
        Ok(ChainResponse::new("{}"))
    }
}
