//! Lists for one client: kept, or asked for and then kept.

use std::sync::Arc;
use std::time::Instant;

use super::list_cache::{Asked, ListCache, ListKey, Scope, is_kept};
use super::middleware::{ChainRequest, ChainResponse};
use super::params::{HOPS, is_any};
use super::passage::{Passage, Way};
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::{Era, meta};
use crate::message::Field;

/// The members of `_meta` on which lists do not depend, or which are otherwise in the key of a list.
const NEUTRAL: [&str; 10] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::LOG_LEVEL,
    HOPS,
    "auth",
    "progressToken",
    "traceparent",
    "tracestate",
    "baggage",
];

/// A list that a client asks for.
pub(super) struct Wanted<'a> {
    cache: &'a ListCache,
    key: ListKey,
    /// Who else may have it if it is private: clients of the same scope. Nobody without one.
    private: Option<Scope>,
    asked: Asked,
}

impl<'a> Wanted<'a> {
    /// What a request asks of the server `of`, or else of all; `None` if that is not kept: it is no list, the params have
    /// members that are not known, or middleware of a server has to see each list.
    pub fn new(passage: &'a Passage, of: Option<usize>, request: &ChainRequest) -> Option<Self> {
        let cache = &*passage.shared.parts.lists;
        let method = request
            .known_method()
            .filter(|method| is_kept(Some(*method)))?;
        let members = passage.shared.members.iter();
        let mut asked = members.filter(|member| of.is_none_or(|of| of == member.index()));
        if cache.is_off() || asked.any(|member| member.parts.external.sees_each_list()) {
            return None;
        }
        let mut cursor = None;
        for (name, value) in reader::members(request.params()) {
            match () {
                () if name == "cursor" => cursor = Some(value.into()),
                () if name == "_meta" => {}
                () => return None,
            }
        }
        let view = request.view();
        let own = view.raw(Field::Meta).unwrap_or("{}");
        if !reader::members(own).all(|(name, _)| is_any(name, &NEUTRAL)) {
            return None;
        }
        let front = passage.route.reply().map(|(front, _)| front)?;
        let capabilities = match request.revision().era() {
            Era::Stateless => view.client_capabilities(),
            Era::Handshake => front.peer().map(|peer| &*peer.capabilities),
        };
        let private = match (&passage.route.principal, &passage.way) {
            (Some(principal), _) => Some(Scope::Principal(principal.as_str().into())),
            // A session, or a lane of its own, stands for the client.
            (None, Way::Own(own)) => {
                let session = passage.route.sessions.first().map(|session| session.number);
                let own = || own.iter().find(|lane| !lane.is_shared());
                let number = session.or_else(|| own().map(|lane| lane.number));
                number.map(Scope::Connection)
            }
            (None, Way::Shared(_)) => None,
        };
        Some(Self {
            cache,
            key: ListKey {
                of,
                method,
                cursor,
                revision: request.revision(),
                capabilities: capabilities.unwrap_or("{}").into(),
                scope: Scope::Public,
            },
            private,
            asked: cache.ask(method),
        })
    }

    /// The list, if it is kept.
    pub fn find(&mut self) -> Option<ChainResponse> {
        let now = Instant::now();
        self.key.scope = Scope::Public;
        let mut found = self.cache.find(&self.key, now);
        if let (None, Some(private)) = (&found, &self.private) {
            self.key.scope = private.clone();
            found = self.cache.find(&self.key, now);
        }
        let (text, freshness) = found?;
        Some(ChainResponse::kept(text, freshness))
    }

    /// Keeps the answer, if its freshness allows it.
    pub fn keep(mut self, answer: ChainResponse) -> ChainResponse {
        let now = Instant::now();
        let fresh = answer.freshness().filter(|it| now < it.until);
        let Some(freshness) = fresh else {
            return answer;
        };
        self.key.scope = match (freshness.is_public, self.private) {
            (true, _) => Scope::Public,
            (false, Some(private)) => private,
            (false, None) => return answer,
        };
        let text: Arc<str> = answer.result().into();
        self.cache.keep(self.key, self.asked, &text, freshness, now);
        answer
    }
}

/// The answer that is kept, or that `ask` gives.
pub(super) async fn kept_or<F>(
    mut wanted: Option<Wanted<'_>>,
    ask: impl FnOnce() -> F,
) -> Result<ChainResponse, RequestError>
where
    F: Future<Output = Result<ChainResponse, RequestError>>,
{
    if let Some(kept) = wanted.as_mut().and_then(Wanted::find) {
        return Ok(kept);
    }
    let answer = ask().await?;
    Ok(match wanted {
        Some(wanted) => wanted.keep(answer),
        None => answer,
    })
}
