//! The status of a gateway over HTTP: a page at `/`, JSON at `/status.json`.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::ready;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::http::uri::Authority;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use mcpbolt::io::Address;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::status::{Row, Status};

/// The most connections at a time.
const MAX_CONNECTIONS: usize = 16;

/// How long a connection may last.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest head of a request.
const MAX_HEAD_BYTES: usize = 32 << 10;

/// Where to listen for an address, unless the status cannot be shown there.
pub fn place(address: &Address, anywhere: bool) -> Result<SocketAddr, String> {
    let Address::Http(url) = address else {
        return Err("is no address of HTTP; write one such as http://127.0.0.1:9090".to_owned());
    };
    if url.secure {
        return Err("is served without TLS; write http://".to_owned());
    }
    if url.path != "/" {
        return Err("has a path; the page is at /, and there is /status.json".to_owned());
    }
    let places = (url.host.as_str(), url.port).to_socket_addrs();
    let mut places = places.map_err(|error| format!("finding its host: {error}"))?;
    let place = places.next().ok_or("its host has no address")?;
    if !anywhere && !place.ip().is_loopback() {
        let why = "can be reached from other machines, where everybody could read it; write 127.0.0.1, or status_anonymous = true";
        return Err(why.to_owned());
    }
    Ok(place)
}

/// Shows the status at an address, on a thread of its own, as long as the process runs. Returns the address.
///
/// # Errors
/// If the address is not one on this machine although it has to be, or cannot be listened on.
pub fn serve(status: Arc<Status>, address: &Address, anywhere: bool) -> Result<String> {
    let wrong = |why| anyhow!("status: {why}");
    let place = place(address, anywhere).map_err(wrong)?;
    let host = match address {
        Address::Http(url) => url.host.clone(),
        _ => String::new(),
    };
    let listener = TcpListener::bind(place).with_context(|| format!("status: {place}"))?;
    listener.set_nonblocking(true)?;
    let place = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let page = Page {
        status,
        host: host.into(),
    };
    thread::Builder::new()
        .name("mcpbolt-status".to_owned())
        .spawn(move || runtime.block_on(page.accept(listener)))?;
    Ok(format!("http://{place}/"))
}

#[derive(Clone)]
struct Page {
    status: Arc<Status>,
    /// As the settings name it.
    host: Arc<str>,
}

impl Page {
    async fn accept(self, listener: TcpListener) {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
            return;
        };
        let mut connections = JoinSet::new();
        loop {
            while connections.len() >= MAX_CONNECTIONS {
                connections.join_next().await;
            }
            while connections.try_join_next().is_some() {}
            let Ok((stream, _)) = listener.accept().await else {
                // The process has run out of descriptors.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let page = self.clone();
            connections.spawn(async move {
                let respond =
                    service_fn(|request| ready(Ok::<_, Infallible>(page.respond(&request))));
                let connection = hyper::server::conn::http1::Builder::new()
                    .keep_alive(false)
                    .max_buf_size(MAX_HEAD_BYTES)
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), respond);
                // A peer that breaks off or takes too long is gone.
                drop(timeout(CONNECTION_TIMEOUT, connection).await);
            });
        }
    }

    fn respond<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !self.is_meant(request) {
            return plain(StatusCode::FORBIDDEN, "the Host is not this one\n");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "GET alone\n");
        }
        match request.uri().path() {
            "/" => {
                let html = html(&self.status.report().upstreams);
                answer(StatusCode::OK, "text/html; charset=utf-8", html)
            }
            "/status.json" => {
                let json = serde_json::to_string(&self.status.report()).unwrap_or_default();
                answer(StatusCode::OK, "application/json", json)
            }
            _ => plain(StatusCode::NOT_FOUND, "there are / and /status.json\n"),
        }
    }

    /// Whether a request is for this place by its `Host`: pages elsewhere whose name leads here must not read the status. The
    /// name of such a page is neither a number nor the one in the settings.
    fn is_meant<B>(&self, request: &Request<B>) -> bool {
        let host = request.headers().get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        let Ok(host) = host.parse::<Authority>() else {
            return false;
        };
        let name = host.host().trim_matches(['[', ']']);
        let is_number = name.parse::<IpAddr>().is_ok();
        let is_named = |own: &str| name.eq_ignore_ascii_case(own);
        is_number || is_named("localhost") || is_named(&self.host)
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    answer(status, "text/plain; charset=utf-8", text.to_owned())
}

fn answer(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

const HEAD: &str = "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=5>\
<title>mcpbolt gateway</title><style>body{font:14px system-ui;margin:2em}table{border-collapse:collapse}\
td,th{padding:.3em .8em;border-bottom:1px solid #ccc;text-align:left}.up{color:#080}.down,.resting{color:#b00}\
</style><h1>mcpbolt gateway</h1><table><tr><th>server<th>state<th>revision<th>program<th>connections<th>restarts\
<th>requests<th>p50 ms<th>p99 ms<th>last error";

fn html(rows: &[Row]) -> String {
    let mut page = HEAD.to_owned();
    for row in rows {
        let program = row.implementation.as_ref().map(|it| it.get());
        let program = program.and_then(|it| serde_json::from_str::<serde_json::Value>(it).ok());
        let program = program.unwrap_or_default();
        let part = |part: &str| program[part].as_str().unwrap_or_default().to_owned();
        let program = format!("{} {}", part("name"), part("version"));
        let outcomes = row.outcomes.iter();
        let outcomes: Vec<_> = outcomes
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        let ms = |pick: fn(&super::status::Latency) -> f64| {
            row.latency
                .as_ref()
                .map_or_else(String::new, |it| format!("{:.1}", pick(it)))
        };
        let error = row.last_error.as_ref().map_or_else(String::new, |error| {
            format!("{} ({} s ago)", error.message, error.seconds_ago)
        });
        let _ = write!(
            page,
            "<tr><td>{}<td class={state}>{state}<td>{}<td>{}<td>{}<td>{}<td>{} {}<td>{}<td>{}<td>{}",
            escaped(&row.name),
            row.revision.unwrap_or_default(),
            escaped(&program),
            row.connections,
            row.restarts,
            row.requests,
            outcomes.join(", "),
            ms(|it| it.p50),
            ms(|it| it.p99),
            escaped(&error),
            state = row.state,
        );
    }
    page.push_str("</table><p><a href=status.json>as JSON</a>\n");
    page
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
