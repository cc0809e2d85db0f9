//! The status of a gateway over HTTP: a page at `/`, JSON at `/status.json`, counts for Prometheus at
//! `/metrics`, and the addresses of health.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, Response, StatusCode};
use mcpbolt::io::Address;
use mcpbolt::telemetry::Prometheus;

use super::status::{Row, Status};
use crate::health::{self, Health};
use crate::page::{self, PageListener, is_meant, page, plain};

/// Where to listen for an address, unless the status cannot be shown there.
pub fn place(address: &Address, anywhere: bool) -> Result<SocketAddr, String> {
    let place = page::place(address)?;
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
pub fn serve(
    status: Arc<Status>,
    counts: Arc<Prometheus>,
    address: &Address,
    anywhere: bool,
    health: impl Fn() -> Health + Clone + Send + 'static,
) -> Result<String> {
    let wrong = |why| anyhow!("status: {why}");
    let place = place(address, anywhere).map_err(wrong)?;
    let host = match address {
        Address::Http(url) => url.host.clone(),
        _ => String::new(),
    };
    let listener = PageListener::bind(place).with_context(|| format!("status: {place}"))?;
    let place = listener.local_addr()?;
    listener.serve("mcpbolt-status", move |request| {
        health::answer(request, health())
            .unwrap_or_else(|| respond(request, &status, &counts, &host))
    })?;
    Ok(format!("http://{place}/"))
}

/// `host` is the name in the settings.
fn respond<B>(
    request: &Request<B>,
    status: &Status,
    counts: &Prometheus,
    host: &str,
) -> Response<Full<Bytes>> {
    if !is_meant(request, host) {
        return plain(StatusCode::FORBIDDEN, "the Host is not this one\n");
    }
    match request.uri().path() {
        "/" => {
            let html = html(&status.report().upstreams);
            page(StatusCode::OK, "text/html; charset=utf-8", html)
        }
        "/status.json" => {
            let json = serde_json::to_string(&status.report()).unwrap_or_default();
            page(StatusCode::OK, "application/json", json)
        }
        "/metrics" => page(StatusCode::OK, Prometheus::CONTENT_TYPE, counts.text()),
        _ => plain(
            StatusCode::NOT_FOUND,
            "there are /, /status.json, /metrics, /healthz and /readyz\n",
        ),
    }
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
    page.push_str(
        "</table><p><a href=status.json>as JSON</a>, <a href=metrics>for Prometheus</a>\n",
    );
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
