//! What stands between the front and the external server: sees, changes, answers or drops the messages of a chain.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use super::attempts::Unopened;
use super::list_cache::Freshness;
use crate::connection::Principal;
use crate::error::{PeerError, RequestError};
use crate::json::string;
use crate::limits::Limits;
use crate::mcp::{Method, Revision};
use crate::message::{Field, Message, MessageRef};

use super::params::with_meta;

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RelayDirection {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// A request on its way through a chain. Its params are the bytes that arrived, until they are replaced.
#[derive(Clone, Debug)]
pub struct ChainRequest {
    pub(super) message: Message,
    pub(super) direction: RelayDirection,
    pub(super) revision: Revision,
    pub(super) principal: Option<Principal>,
}

impl ChainRequest {
    /// The id that the sender gave the request, raw JSON. Requests of several senders may have the same one.
    pub fn id(&self) -> &str {
        self.message.as_ref().id().map_or("0", |id| id.raw())
    }

    /// Which way the request goes.
    pub fn direction(&self) -> RelayDirection {
        self.direction
    }

    /// The method.
    pub fn method(&self) -> Cow<'_, str> {
        self.view().method().unwrap_or_default()
    }

    /// The params, raw JSON; `{}` if the request has none.
    pub fn params(&self) -> &str {
        self.view().params().unwrap_or("{}")
    }

    /// `params.name`, or else `params.uri`.
    pub fn target(&self) -> Option<Cow<'_, str>> {
        self.view().name().or_else(|| self.view().uri())
    }

    /// The revision in which the sender speaks.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The verified sender; `None` if nobody verified it.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Replaces the params.
    ///
    /// # Errors
    /// [`RequestError::Misuse`] if `params` is not a JSON object; the request stays as it was.
    pub fn set_params(&mut self, params: &str) -> Result<(), RequestError> {
        let view = self.message.as_ref();
        let id = view.id().map_or("0", |id| id.raw());
        let message = message(id, &view.method().unwrap_or_default(), params);
        let misuse = || RequestError::Misuse("the params of a request are a JSON object");
        self.message = message.ok_or_else(misuse)?;
        Ok(())
    }

    /// A further request of the same sender, with the same `_meta` but for the progress token. `params` are JSON members
    /// without braces.
    pub(super) fn further(&self, method: Method, params: &str) -> Result<Self, RequestError> {
        let meta = self
            .view()
            .raw(Field::Meta)
            .filter(|it| it.starts_with('{'));
        let comma = if params.is_empty() { "" } else { "," };
        let params = format!("{{\"_meta\":{}{comma}{params}}}", meta.unwrap_or("{}"));
        let mut further = self.clone();
        let misuse = || RequestError::Misuse("the params of a request are a JSON object");
        let params = with_meta(&params, "progressToken", None);
        further.message = message(self.id(), method.name(), &params).ok_or_else(misuse)?;
        Ok(further)
    }

    /// A question that a server of the stateless era put in a result.
    pub(super) fn question(
        method: &str,
        params: &str,
        revision: Revision,
    ) -> Result<Self, RequestError> {
        let message = message("0", method, params);
        let wrong = || RequestError::BadAnswer("a question whose params are no object");
        Ok(Self {
            message: message.ok_or_else(wrong)?,
            direction: RelayDirection::ToClient,
            revision,
            principal: None,
        })
    }

    pub(super) fn view(&self) -> MessageRef<'_> {
        self.message.as_ref()
    }

    pub(super) fn known_method(&self) -> Option<Method> {
        Method::parse(&self.method())
    }
}

/// A request of these parts; `None` if the params are no JSON object. `id` is raw JSON.
fn message(id: &str, method: &str, params: &str) -> Option<Message> {
    if !params.trim_start().starts_with('{') {
        return None;
    }
    let mut text = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
    text.extend_from_slice(id.as_bytes());
    text.extend_from_slice(b",\"method\":");
    string::append(&mut text, method);
    text.extend_from_slice(b",\"params\":");
    text.extend_from_slice(params.as_bytes());
    text.push(b'}');
    Message::parse(&text, Limits::STDIO.max_depth).ok()
}

/// The result of a request on its way back.
#[derive(Clone, Debug)]
pub struct ChainResponse(Whole);

#[derive(Clone, Debug)]
struct Whole {
    body: Body,
    /// How long a list may be kept; `None` for all that was made here.
    freshness: Option<Freshness>,
}

#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are messages, which are not moved often"
)]
enum Body {
    Message(Message),
    Text(String),
    /// One that other clients get, too.
    Kept(Arc<str>),
}

impl ChainResponse {
    /// A result made here, a JSON object.
    pub fn new(result: impl Into<String>) -> Self {
        Body::Text(result.into()).into()
    }

    pub(super) fn kept(text: Arc<str>, freshness: Freshness) -> Self {
        Self::from(Body::Kept(text)).with(Some(freshness))
    }

    /// Whether it was kept, and so was looked at when it came.
    pub(super) fn is_kept(&self) -> bool {
        matches!(self.0.body, Body::Kept(_))
    }

    pub(super) fn with(self, freshness: Option<Freshness>) -> Self {
        Self(Whole {
            freshness,
            ..self.0
        })
    }

    pub(super) fn freshness(&self) -> Option<Freshness> {
        self.0.freshness
    }

    /// The result, raw JSON.
    pub fn result(&self) -> &str {
        match &self.0.body {
            Body::Message(message) => message.as_ref().result().unwrap_or("{}"),
            Body::Text(text) => text,
            Body::Kept(text) => text,
        }
    }
}

impl From<Body> for ChainResponse {
    fn from(body: Body) -> Self {
        Self(Whole {
            body,
            freshness: None,
        })
    }
}

impl From<Message> for ChainResponse {
    fn from(message: Message) -> Self {
        Body::Message(message).into()
    }
}

/// A notification on its way through a chain, other than progress and cancellations, which belong to a hop.
#[derive(Clone, Debug)]
pub struct ChainNotification {
    /// Which way the notification goes.
    pub direction: RelayDirection,
    /// The method.
    pub method: String,
    /// The params, raw JSON.
    pub params: Option<String>,
}

impl ChainNotification {
    pub(super) fn new(direction: RelayDirection, method: &str, params: Option<&str>) -> Self {
        Self {
            direction,
            method: method.to_owned(),
            params: params.map(str::to_owned),
        }
    }
}

/// The future of an answer.
pub type ChainAnswer<'a> =
    Pin<Box<dyn Future<Output = Result<ChainResponse, RequestError>> + Send + 'a>>;

/// The future of a notification: what is passed on, or `None` if nothing is.
pub type ChainNotice<'a> = Pin<Box<dyn Future<Output = Option<ChainNotification>> + Send + 'a>>;

/// The future of a connection that opens.
#[doc(hidden)]
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<(), Unopened>> + Send + 'a>>;

/// A part of a chain that sees its messages. Each method passes messages on unless it is implemented.
///
/// Middleware runs in the order in which it was added, from the front to the external server, for requests; and in the
/// reverse order for answers, which are what `next` resolves to, and for messages of the server (R-CHN-08).
pub trait Middleware: Send + Sync + 'static {
    /// Handles a request. `next.run(request)` passes the request on and resolves to its answer. To refuse a request,
    /// return [`RequestError::Peer`] with the code for the sender ([`refusal`]). The future is dropped if the request is
    /// cancelled.
    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        next.run(request)
    }

    /// Whether lists that have passed this middleware of a [server](super::External::with) may be kept for other requests and
    /// clients, as far as the server allows it: what it does to them depends on nothing but the list. Default: `false`.
    fn keeps_lists(&self) -> bool {
        false
    }

    /// Handles a notification; `None` drops it. Runs on a driver's thread; must not block.
    fn notification(&self, notification: ChainNotification) -> Option<ChainNotification> {
        Some(notification)
    }

    /// Handles a notification by something that has to be waited for. Messages that come meanwhile may overtake it. By
    /// default it is handled by [`notification`](Self::notification).
    fn notice(&self, notification: ChainNotification) -> ChainNotice<'_> {
        Box::pin(ready(self.notification(notification)))
    }

    /// A connection to the server is opened that no request has asked for. The future is dropped when nobody needs it any more.
    #[doc(hidden)]
    fn connection_opens<'a>(&'a self, opening: Opening<'a>) -> Opening<'a> {
        opening
    }

    /// The connection with that number has ended. Must not block.
    #[doc(hidden)]
    fn connection_ended(&self, _connection: u64) {}
}

impl<M: Middleware + ?Sized> Middleware for Arc<M> {
    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        (**self).request(request, next)
    }

    fn keeps_lists(&self) -> bool {
        (**self).keeps_lists()
    }

    fn notification(&self, notification: ChainNotification) -> Option<ChainNotification> {
        (**self).notification(notification)
    }

    fn notice(&self, notification: ChainNotification) -> ChainNotice<'_> {
        (**self).notice(notification)
    }

    fn connection_opens<'a>(&'a self, opening: Opening<'a>) -> Opening<'a> {
        (**self).connection_opens(opening)
    }

    fn connection_ended(&self, connection: u64) {
        (**self).connection_ended(connection);
    }
}

/// The error with which middleware refuses a request.
pub fn refusal(code: i64, message: impl Into<Box<str>>) -> RequestError {
    RequestError::Peer(PeerError {
        code,
        message: message.into(),
        data: None,
    })
}

/// The rest of a chain. A clone passes on another request, such as one that has to be sent again. The request that
/// middleware was given has one answer all the same: the one that the middleware returns.
#[derive(Clone)]
pub struct NextHop<'a> {
    rest: Rest<'a>,
    last: Last<'a>,
    /// The call of the client, on the way to a server.
    caller: Option<Arc<dyn Caller>>,
    /// The number of the only connection that a request may take.
    connection: Option<u64>,
}

/// A call of a client.
pub(super) trait Caller: Send + Sync {
    /// Asks the client, which has declared these capabilities with the call if it is of the stateless era.
    fn ask_client(
        self: Arc<Self>,
        declared: Option<Box<str>>,
        question: ChainRequest,
    ) -> ChainAnswer<'static>;

    /// How often the server has said something about the call, and whether a question of the server waits for the client.
    fn signs(&self) -> (u64, bool);
}

/// The future of a way over a connection, with the number of the connection; `None` if the next hop is none.
pub(super) type Bound<'a> =
    Pin<Box<dyn Future<Output = Result<Option<(u64, Last<'a>)>, RequestError>> + Send + 'a>>;

/// The way to the next hop.
pub(super) trait Line<'a>: Send + Sync {
    /// Sends a request.
    fn send(&self, request: ChainRequest) -> ChainAnswer<'a>;

    /// The way over the connection that requests take now and no other. Opens it if need be.
    fn bound(&self) -> Bound<'a> {
        Box::pin(ready(Ok(None)))
    }

    /// The attempt to connect for want of which the last request has failed.
    fn unopened(&self) -> Option<u64> {
        None
    }

    /// Whether it leads a request to the server that the front stands for, and to no other.
    #[cfg(feature = "settings")]
    fn is_own(&self, _request: &ChainRequest) -> bool {
        false
    }
}

impl<'a, F: Fn(ChainRequest) -> ChainAnswer<'a> + Send + Sync> Line<'a> for F {
    fn send(&self, request: ChainRequest) -> ChainAnswer<'a> {
        self(request)
    }
}

pub(super) type Last<'a> = Arc<dyn Line<'a> + 'a>;

/// The middleware that is still to run, in the direction of the request.
#[derive(Clone)]
enum Rest<'a> {
    Forth(&'a [Arc<dyn Middleware>]),
    Back(&'a [Arc<dyn Middleware>]),
}

impl<'a> NextHop<'a> {
    pub(super) fn new(
        all: &'a [Arc<dyn Middleware>],
        direction: RelayDirection,
        last: impl Fn(ChainRequest) -> ChainAnswer<'a> + Send + Sync + 'a,
    ) -> Self {
        Self::over(all, direction, last)
    }

    /// The rest of a chain whose end may be a connection.
    pub(super) fn over(
        all: &'a [Arc<dyn Middleware>],
        direction: RelayDirection,
        last: impl Line<'a> + 'a,
    ) -> Self {
        let rest = match direction {
            RelayDirection::ToServer => Rest::Forth(all),
            RelayDirection::ToClient => Rest::Back(all),
        };
        Self {
            rest,
            last: Arc::new(last),
            caller: None,
            connection: None,
        }
    }

    /// Notes the call of the client, which middleware may ask something.
    pub(super) fn of(mut self, call: Arc<dyn Caller>) -> Self {
        self.caller = Some(call);
        self
    }

    /// The same hop, over the connection that requests take now and no other: one that comes in its place may lead to another version of
    /// the server. Opens a connection if need be.
    ///
    /// # Errors
    /// Why none can be opened.
    pub(super) async fn bound(mut self) -> Result<Self, RequestError> {
        if let Some((connection, last)) = self.last.bound().await? {
            (self.connection, self.last) = (Some(connection), last);
        }
        Ok(self)
    }

    /// The number of the connection that this hop is [bound](Self::bound) to. No two have the same.
    pub(super) fn connection(&self) -> Option<u64> {
        self.connection
    }

    /// The attempt to connect for want of which the last request has failed, if it has. Others may have waited for that attempt, too.
    pub(super) fn unopened(&self) -> Option<u64> {
        self.last.unopened()
    }

    /// Whether a request, as it is, goes to the server that the front stands for, and to no other.
    #[cfg(feature = "settings")]
    pub(crate) fn is_own(&self, request: &ChainRequest) -> bool {
        self.last.is_own(request)
    }

    /// Passes a request on. Resolves to the answer.
    pub fn run(self, request: ChainRequest) -> ChainAnswer<'a> {
        let Self {
            rest,
            last,
            caller,
            connection,
        } = self;
        let (first, rest) = match rest {
            Rest::Forth(all) => (all.split_first(), Rest::Forth as fn(_) -> _),
            Rest::Back(all) => (all.split_last(), Rest::Back as fn(_) -> _),
        };
        match first {
            None => last.send(request),
            Some((first, others)) => {
                let rest = rest(others);
                let next = NextHop {
                    rest,
                    last,
                    caller,
                    connection,
                };
                first.request(request, next)
            }
        }
    }

    /// Asks the client that sent `request` something, such as `elicitation/create`, before the request is passed on. A client
    /// of the stateless era is asked in the answer of its request, which it then sends again (`input_required`).
    ///
    /// ```
    /// # use mcpbolt::chain::{ChainAnswer, ChainRequest, NextHop, refusal};
    /// # fn ask<'a>(request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
    /// Box::pin(async move {
    ///     let form = r#"{"message":"Really?","requestedSchema":{"type":"object","properties":{}}}"#;
    ///     let answer = next.ask(&request, "elicitation/create", form).await?;
    ///     match answer.result().contains(r#""accept""#) {
    ///         true => next.run(request).await,
    ///         false => Err(refusal(-32602, "the user has refused")),
    ///     }
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RequestError::Unsupported`] if the client has not declared to answer such questions, [`RequestError::Misuse`] if the
    /// request is not one of a client to a server, and what ends the question.
    pub fn ask(&self, request: &ChainRequest, method: &str, params: &str) -> ChainAnswer<'static> {
        let question = ChainRequest::question(method, params, request.revision());
        match (&self.caller, question) {
            (Some(caller), Ok(question)) => {
                let capabilities = request.view().client_capabilities().map(Box::from);
                caller.clone().ask_client(capabilities, question)
            }
            (_, Err(error)) => Box::pin(ready(Err(error))),
            (None, _) => {
                let why = "only the client that sent a request can be asked something";
                Box::pin(ready(Err(RequestError::Misuse(why))))
            }
        }
    }

    /// How often the server has said something about the call, and whether a question of the server waits for the client.
    pub(super) fn signs(&self) -> (u64, bool) {
        self.caller.as_ref().map_or((0, false), |call| call.signs())
    }
}

impl fmt::Debug for NextHop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextHop").finish_non_exhaustive()
    }
}

/// Shows a notification to all middleware; `None` if one of them drops it.
pub(super) async fn notify(
    all: &[Arc<dyn Middleware>],
    mut notification: ChainNotification,
) -> Option<ChainNotification> {
    let (count, direction) = (all.len(), notification.direction);
    for passed in 0..count {
        let at = match direction {
            RelayDirection::ToServer => passed,
            RelayDirection::ToClient => count - 1 - passed,
        };
        notification = all.get(at)?.notice(notification).await?;
    }
    Some(notification)
}
