//! One HTTP endpoint: the line that every request passes.
//!
//! ```text
//!   gate ─▶ kind of the request ─┬─▶ message ─▶ route ─┬─▶ exchanges   (stands alone)
//!                                │                     ├─▶ sessions
//!                                │                     ╰─▶ actions
//!                                ├─▶ stream, or end, of a session
//!                                ├─▶ stream of an action
//!                                ╰─▶ WebSocket
//! ```

use std::io;
use std::mem;
use std::sync::Arc;

use http_body::Body;
use hyper::Response;
use hyper::http::request::Parts;

use super::action_streams::ActionStreams;
use super::actions::Actions;
use super::body::HttpBody;
use super::collect::collect;
#[cfg(feature = "consent-proxy")]
use super::consent::ConsentEndpoint;
use super::exchanges::Exchanges;
use super::gate::{Admitted, Gate, Passed, RequestKind};
#[cfg(feature = "compression")]
use super::gzip;
#[cfg(unix)]
use super::hop_body::CopyBounds;
use super::options::HttpOptions;
use super::peer::PeerAddress;
use super::refusal::WRONG_METHOD;
#[cfg(feature = "resource-server")]
use super::resource::ResourceEndpoint;
use super::response::{self, HttpAnswer};
use super::route::{Route, Spoken};
use super::sessions::Sessions;
#[cfg(feature = "sealing")]
use super::shared_changes::SharedChanges;
use super::timekeeper::Timekeeper;
use super::websocket;
use crate::connection::{Budget, Config};
#[cfg(feature = "resource-server")]
use crate::io::http::connect_issuers;
use crate::io::net::metrics::{Metrics, count};
use crate::io::net::reception::Reception;
use crate::io::trace::traced;
use crate::mcp::Era;
use crate::server::Hosting;

pub struct Endpoint {
    pub(super) options: Arc<HttpOptions>,
    gate: Gate,
    spoken: Spoken,
    pub(super) budget: Arc<Budget>,
    exchanges: Arc<Exchanges>,
    /// `None` when no revision with a handshake is spoken.
    pub(super) sessions: Option<Arc<Sessions>>,
    actions: Actions,
    /// Serves connections that upgrade to WebSocket.
    reception: Arc<Reception>,
    #[cfg(feature = "sealing")]
    changes: Option<SharedChanges>,
    #[cfg(feature = "consent-proxy")]
    consent: Option<ConsentEndpoint>,
    #[cfg(feature = "resource-server")]
    resource: Option<ResourceEndpoint>,
}

impl Endpoint {
    /// `worker`: the number of this process among those that serve the endpoint.
    pub fn new(
        hosting: Arc<dyn Hosting>,
        options: HttpOptions,
        worker: Option<u64>,
    ) -> io::Result<Self> {
        let reception = Arc::new(Reception::new(hosting.clone(), &options));
        let mut config = Config::clone(hosting.config());
        config.limits = options.limits.clone();
        config.budget.join_network();
        // Sessions have their own idle timeout, `session_ttl`; a request that stands alone ends before an
        // idle timeout could apply.
        config.limits.idle_timeout = None;
        let config = traced(Arc::new(config))?;
        let handshake = of_era(&config, Era::Handshake);
        let mut alone = of_era(&config, Era::Stateless);
        alone.limits.keepalive_interval = None;
        let options = Arc::new(options);
        let has_sessions = handshake.revisions.newest(Era::Handshake).is_some();
        let spoken = Spoken {
            handshake: has_sessions.then_some(handshake.revisions),
            legacy: has_sessions && options.sse,
            actions: config.actions,
            max_depth: config.limits.max_depth,
        };
        let alone = Arc::new(alone);
        let timekeeper = Arc::new(Timekeeper::new(alone.clone()));
        let exchanges = {
            let (options, timekeeper) = (options.clone(), timekeeper.clone());
            Arc::new(Exchanges::new(hosting.clone(), alone, options, timekeeper))
        };
        let streams = ActionStreams::new(&options, &config.budget, worker);
        let sessions = has_sessions.then(|| {
            let (options, metrics) = (options.clone(), reception.metrics().clone());
            let sessions = (hosting.clone(), Arc::new(handshake));
            let sessions = Sessions::new(sessions, options, metrics, (worker, timekeeper));
            Arc::new(sessions)
        });
        #[cfg(feature = "sealing")]
        let changes = options.shared_sessions.as_ref().and_then(|shared| {
            hosting.share_states(shared.state_key());
            hosting.share_tasks(Arc::new(shared.sealed_store()));
            shared.share_policy(hosting.policy().as_deref());
            SharedChanges::new(shared, &*hosting)
        });
        #[cfg(feature = "resource-server")]
        connect_issuers(hosting.policy().as_deref())?;
        #[cfg(feature = "consent-proxy")]
        let consent = match hosting.policy().as_ref().and_then(|policy| policy.issuer()) {
            Some(proxy) => Some(ConsentEndpoint::new(proxy.clone())?),
            None => None,
        };
        #[cfg(feature = "resource-server")]
        let resource = hosting
            .policy()
            .and_then(|policy| ResourceEndpoint::of(&policy));
        Ok(Self {
            #[cfg(feature = "resource-server")]
            resource,
            gate: Gate::new(
                &options,
                (has_sessions, config.actions),
                Some(hosting.clone()),
            ),
            spoken,
            budget: config.budget.clone(),
            actions: Actions::new(exchanges.clone(), streams, options.comment_interval),
            exchanges,
            sessions,
            #[cfg(feature = "sealing")]
            changes,
            #[cfg(feature = "consent-proxy")]
            consent,
            options,
            reception,
        })
    }

    pub fn options(&self) -> &HttpOptions {
        &self.options
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        self.reception.metrics()
    }

    /// Whether clients must send credentials.
    pub fn has_verifier(&self) -> bool {
        self.gate.has_verifier()
    }

    /// Has clients begin other sessions at a worker that has taken over, before [`stop`](Self::stop).
    pub fn give_up_sessions(&self) {
        if let Some(sessions) = &self.sessions {
            sessions.give_up();
        }
    }

    /// The bounds of copies of bodies that go to other workers.
    #[cfg(unix)]
    pub fn copy_bounds(&self) -> CopyBounds {
        CopyBounds {
            each: self.options.limits.max_message_bytes,
            all: self.budget.clone(),
        }
    }

    /// Ends open streams gracefully.
    pub fn stop(&self) {
        self.exchanges.stop();
        if let Some(sessions) = &self.sessions {
            sessions.drain();
        }
        self.reception.stop();
    }

    /// Begins what does not wait for a request. In the context of a tokio runtime; more than once does no harm.
    pub fn begin(&self) {
        #[cfg(feature = "sealing")]
        if let Some(changes) = &self.changes {
            changes.begin();
        }
    }

    /// Answers one request, whose headers are gone then. The peer's address is an argument, since an extension of the
    /// request would cost an allocation.
    pub async fn respond<B: Body>(
        &self,
        parts: &mut Parts,
        body: B,
        peer: Option<PeerAddress>,
    ) -> Response<HttpBody> {
        count(&self.metrics().requests);
        self.begin();
        #[cfg(feature = "consent-proxy")]
        if let Some(consent) = self
            .consent
            .as_ref()
            .filter(|it| it.serves(parts.uri.path()))
        {
            return Box::pin(consent.respond(parts, body)).await;
        }
        #[cfg(feature = "resource-server")]
        if let Some(resource) = &self.resource
            && let Some(response) = resource.metadata(parts)
        {
            return response;
        }
        #[cfg(feature = "tracing")]
        let (method, begun) = (parts.method.clone(), std::time::Instant::now());
        #[cfg(feature = "compression")]
        let compressed = gzip::is_wanted(&parts.headers, &self.options);
        let (page, response) = {
            let mut heard = None;
            let Passed { page, request } = loop {
                match self.gate.pass(parts, peer, heard.take()) {
                    Ok(passed) => break passed,
                    Err(verification) => heard = Some(verification.await),
                }
            };
            match request {
                Ok(admitted) => (page, self.serve(&admitted, body).await),
                Err(response) => (page, *response),
            }
        };
        #[cfg(feature = "resource-server")]
        let response = match &self.resource {
            Some(resource) => resource.completed(response),
            None => response,
        };
        let response = response::in_place_of(mem::take(&mut parts.headers), response);
        #[cfg(feature = "compression")]
        let response = match compressed {
            true => response::compressed(response),
            false => response,
        };
        self.metrics().errors.count(response.status().as_u16());
        event!(debug, %method, status = response.status().as_u16(), took = ?begun.elapsed(), "a request of HTTP");
        match page {
            Some(page) => page.admit(response),
            None => response,
        }
    }

    async fn serve<B: Body>(&self, request: &Admitted<'_>, body: B) -> Response<HttpBody> {
        let in_actions = request.in_actions();
        let answer = match (request.kind(), &self.sessions) {
            (RequestKind::Message, _) => self.post(request, body).await,
            (RequestKind::EventStream, Some(sessions)) => sessions.open_stream(request).await,
            (RequestKind::EndOfSession, Some(sessions)) => sessions.end(request).await,
            (RequestKind::EventStream | RequestKind::EndOfSession, None) => Err(WRONG_METHOD),
            (RequestKind::ActionStream, _) => return Box::pin(self.actions.get(request)).await,
            (RequestKind::WebSocket, _) => {
                websocket::upgrade(request, &self.options.trusted_proxies, &self.reception)
            }
        };
        answer.unwrap_or_else(|refusal| response::refused(refusal, in_actions))
    }

    async fn post<B: Body>(&self, request: &Admitted<'_>, body: B) -> HttpAnswer {
        let by_headers = self.spoken.by_headers(request)?;
        // An unknown session is refused before the body is read.
        let session = match (by_headers, &self.sessions) {
            (Some(Route::Session), Some(sessions)) => Some(sessions.named(request).await?),
            (Some(Route::LegacySession), Some(sessions)) => Some(sessions.named_by_uri(request)?),
            _ => None,
        };
        let limits = &self.options.limits;
        let body = collect(request.headers(), body, limits, &self.budget).await?;
        let route = match by_headers {
            Some(route) => route,
            None => self.spoken.by_body(&request.headers().accept, &body)?,
        };
        match (route, &self.sessions, session) {
            // Rare futures are boxed, so that those of other requests are smaller.
            (Route::Action, ..) => Ok(Box::pin(self.actions.post(request, body)).await),
            (Route::Session, Some(sessions), Some(session)) => {
                let session = sessions.taking(session, request, &body).await?;
                sessions.post(&session, request, body, |_| ()).await
            }
            (Route::LegacySession, Some(sessions), Some(session)) => {
                sessions.post_legacy(&session, request, &body)
            }
            (Route::Initialize, Some(sessions), _) => Box::pin(sessions.begin(request, body)).await,
            _ => self.exchanges.serve(request, body).await,
        }
    }
}

/// A copy of `config` limited to the revisions of one era.
fn of_era(config: &Config, era: Era) -> Config {
    let mut config = config.clone();
    let all = config.revisions.iter();
    config.revisions = all.filter(|one| one.era() == era).collect();
    config
}
