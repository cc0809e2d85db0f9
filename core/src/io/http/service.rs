//! A server as a service: a request in, an answer out, on whatever carries HTTP.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::Body;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode};

use super::body::HttpBody;
use super::events::Events;
use super::exchange::Exchange;
use super::guard::{self, EVENTS, JSON, Refusal};
use super::options::HttpOptions;
use crate::connection::Config;
use crate::correlate::CancelToken;
use crate::handler::Spawner;
use crate::io::trace::traced;
use crate::io::workers::{Workers, WorkersConfig};
use crate::json::{number, reader};
use crate::mcp::{Era, Revisions, code};
use crate::message::encode::{self, ErrorId};
use crate::server::Server;

/// Longest answer that is looked at for the code of an error, in bytes: errors are short.
const ERROR_BYTES: usize = 64 << 10;

/// A server behind one HTTP endpoint. Cheap to clone; a `tower` service, and hyper's.
///
/// ```no_run
/// # async fn example(server: mcpbolt::server::Server) -> std::io::Result<()> {
/// use mcpbolt::io::http::{HttpOptions, HttpService};
/// let service = HttpService::new(&server, HttpOptions::default())?;
/// // … as a route of a `tower` application, or:
/// # let request: hyper::Request<String> = unimplemented!();
/// let response = service.respond(request).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HttpService(Arc<Shared>);

struct Shared {
    server: Server,
    config: Arc<Config>,
    options: HttpOptions,
    spawner: Arc<dyn Spawner>,
    stop: CancelToken,
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

impl HttpService {
    /// Serves what `server` offers. Its handlers run on threads of the engine's.
    ///
    /// # Errors
    /// When the trace that [`TRACE_VARIABLE`](crate::io::TRACE_VARIABLE) asks for cannot be
    /// written.
    pub fn new(server: &Server, options: HttpOptions) -> io::Result<Self> {
        let mut config = Config::clone(server.config());
        config.limits = options.limits.clone();
        config.revisions = stateless(config.revisions);
        Ok(Self(Arc::new(Shared {
            server: server.clone(),
            config: traced(Arc::new(config))?,
            options,
            spawner: Arc::new(Workers::new(WorkersConfig::default())),
            stop: CancelToken::new(),
        })))
    }

    pub(super) fn options(&self) -> &HttpOptions {
        &self.0.options
    }

    /// Streams that are open end in good order.
    pub(super) fn stop(&self) {
        self.0.stop.cancel(None);
    }

    /// Answers one request.
    ///
    /// # Cancel safety
    /// Dropping the future, or the body of its answer, cancels the request.
    pub async fn respond<B: Body>(&self, request: Request<B>) -> Response<HttpBody> {
        let Shared {
            server,
            config,
            options,
            spawner,
            ..
        } = &*self.0;
        let (parts, body) = request.into_parts();
        if let Err(refusal) = guard::check(&parts, options) {
            return refused(refusal);
        }
        let max = config.limits.max_message_bytes;
        if claimed(&parts.headers).is_some_and(|len| len > max as u64) {
            return refused(TOO_LARGE);
        }
        let mut exchange = Exchange::new(server, config, spawner, parts.headers);
        let collected = collect(body, &mut exchange, max);
        match tokio::time::timeout(config.limits.stall_timeout, collected).await {
            Ok(Ok(())) => {}
            Ok(Err(refusal)) => return refused(refusal),
            Err(_late) => return refused(TOO_SLOW),
        }
        if exchange.body().is_empty() {
            return refused(NO_MESSAGE);
        }
        exchange.begin();
        poll_fn(|cx| exchange.poll(cx)).await;
        self.answer(exchange)
    }

    /// R-HTP-17, R-HTP-18: one message is JSON; anything before the answer makes it events.
    fn answer(&self, mut exchange: Exchange) -> Response<HttpBody> {
        let Shared { options, stop, .. } = &*self.0;
        if !exchange.is_done() {
            let stop = (stop, options.grace);
            let events = Events::new(exchange, options.comment_interval, stop);
            return stream(HttpBody::events(events));
        }
        let pieces: VecDeque<Bytes> = exchange.take().collect();
        if pieces.is_empty() {
            return match exchange.is_stray() {
                // R-HTP-05
                false => with(StatusCode::ACCEPTED, HttpBody::empty()),
                true => refused(NO_MESSAGE),
            };
        }
        if is_one_message(&pieces) {
            let status = status(&pieces, exchange.reached_server());
            return json(status, HttpBody::whole(pieces));
        }
        let mut events = VecDeque::new();
        super::events::Encoder::default().encode(pieces.into_iter(), &mut events);
        stream(HttpBody::whole(events))
    }
}

/// The revisions in which a request stands alone.
fn stateless(revisions: Revisions) -> Revisions {
    let all = revisions.iter();
    all.filter(|one| one.era() == Era::Stateless).collect()
}

const TOO_LARGE: Refusal = Refusal::new(
    StatusCode::PAYLOAD_TOO_LARGE,
    "the message is longer than this server takes",
);
const TOO_SLOW: Refusal = Refusal::new(
    StatusCode::REQUEST_TIMEOUT,
    "the body did not come to its end in time",
);
const BROKEN: Refusal = Refusal::new(StatusCode::BAD_REQUEST, "the body broke off");
const NO_MESSAGE: Refusal = Refusal::new(
    StatusCode::BAD_REQUEST,
    "this is no message that a server takes",
);

fn claimed(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn collect<B: Body>(body: B, exchange: &mut Exchange, max: usize) -> Result<(), Refusal> {
    let mut body = pin!(body);
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|_| BROKEN)?;
        let Ok(mut data) = frame.into_data() else {
            continue;
        };
        let input = exchange.body();
        if data.remaining() > max - input.len() {
            return Err(TOO_LARGE);
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            input.extend(chunk);
            let len = chunk.len();
            data.advance(len);
        }
    }
    Ok(())
}

/// Whether the only end of a line is the last byte.
fn is_one_message(pieces: &VecDeque<Bytes>) -> bool {
    let last = pieces.len().saturating_sub(1);
    pieces.iter().enumerate().all(|(index, piece)| {
        memchr::memchr(b'\n', piece).is_none_or(|at| index == last && at + 1 == piece.len())
    })
}

/// R-ERR-30: what the status says of an error; that the server itself refuses params is an answer
/// like any other.
fn status(pieces: &VecDeque<Bytes>, reached: bool) -> StatusCode {
    let error = match (pieces.front(), pieces.len()) {
        (Some(piece), 1) if piece.len() <= ERROR_BYTES => std::str::from_utf8(piece).ok(),
        _ => None,
    };
    let code = error
        .and_then(|error| reader::find_path(error, &["error", "code"]))
        .and_then(number::as_i64);
    match code {
        None => StatusCode::OK,
        Some(code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            code::PARSE_ERROR
            | code::INVALID_REQUEST
            | code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_VERSION,
        ) => StatusCode::BAD_REQUEST,
        Some(code::OVERLOADED | code::SHUTTING_DOWN) => StatusCode::SERVICE_UNAVAILABLE,
        Some(code::INVALID_PARAMS) if !reached => StatusCode::BAD_REQUEST,
        Some(_) => StatusCode::OK,
    }
}

fn with(status: StatusCode, body: HttpBody) -> Response<HttpBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

fn json(status: StatusCode, body: HttpBody) -> Response<HttpBody> {
    let mut response = with(status, body);
    let kind = HeaderValue::from_static(JSON);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn stream(body: HttpBody) -> Response<HttpBody> {
    let mut response = with(StatusCode::OK, body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // R-HTP-15
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn refused(Refusal { status, why }: Refusal) -> Response<HttpBody> {
    let mut body = Vec::new();
    encode::error(&mut body, ErrorId::Omit, code::INVALID_REQUEST, why, None);
    let mut response = json(status, HttpBody::whole([body.into()].into()));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<HttpBody>, Infallible>> + Send>>;

impl<B: Body + Send + 'static> tower_service::Service<Request<B>> for HttpService
where
    B::Data: Send,
{
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await) })
    }
}
