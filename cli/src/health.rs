//! Whether a server is alive and ready, over HTTP: `/healthz` and `/readyz`.

use anyhow::{Context, Result, anyhow};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, Response, StatusCode};
use mcpbolt::io::Address;

use crate::page::{self, PageListener, plain};
use crate::systemd::Handed;

/// How far a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Starting,
    Ready,
    /// No worker serves at the moment.
    Interrupted,
    Draining,
}

impl Health {
    fn text(self) -> &'static str {
        match self {
            Self::Starting => "starting\n",
            Self::Ready => "ready\n",
            Self::Interrupted => "no worker serves\n",
            Self::Draining => "draining\n",
        }
    }
}

/// The answer to a request at one of the addresses of health; `None` at another path.
///
/// `/healthz` and `/livez` say that the process runs, also while it drains; `/readyz` says whether it takes requests.
pub fn answer<B>(request: &Request<B>, now: Health) -> Option<Response<Full<Bytes>>> {
    let status = match request.uri().path() {
        "/healthz" | "/livez" => return Some(plain(StatusCode::OK, "alive\n")),
        "/readyz" if now == Health::Ready => StatusCode::OK,
        "/readyz" => StatusCode::SERVICE_UNAVAILABLE,
        _ => return None,
    };
    Some(plain(status, now.text()))
}

/// Listens for the addresses of health alone, on the socket of the service manager if there is one. Whoever reaches the address may read them:
/// they tell nothing else. `option` is the address's name in errors.
pub fn listen(
    option: &str,
    address: Option<&Address>,
    handed: &Handed,
) -> Result<Option<PageListener>> {
    if let Some(handed) = handed.health()? {
        return Ok(Some(handed.into()));
    }
    let listen = |address| {
        let place = page::place(address).map_err(|why| anyhow!("{option} {why}"))?;
        PageListener::bind(place).with_context(|| format!("{option} {place}"))
    };
    address.map(listen).transpose()
}

/// Answers at the addresses of health, on a thread of its own, as long as the process runs.
pub fn serve(
    listener: PageListener,
    now: impl Fn() -> Health + Clone + Send + 'static,
) -> Result<()> {
    listener.serve("mcpbolt-health", move |request| {
        let answered = answer(request, now());
        answered.unwrap_or_else(|| plain(StatusCode::NOT_FOUND, "there are /healthz and /readyz\n"))
    })
}
