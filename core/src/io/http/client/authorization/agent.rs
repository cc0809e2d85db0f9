//! Drives a login: sends its requests, asks the user.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use mcpbolt_oauth::client::{
    Login, LoginAnswer, LoginError, LoginOptions, LoginStage, LoginStep, OAuthRequest,
    OAuthResponse, Occasion, ServerCredentials, UrlGuard, Zone,
};
use mcpbolt_oauth::store::CredentialStore;
use tokio::time::{sleep, timeout};
use url::Url;

use super::Logins;
use super::hooks::LoginHooks;
use crate::error::CarrierError;
use crate::io::http::client::connections::{ConnectionSettings, HttpConnections, uri};
use crate::io::http::client::failure::silent;
use crate::io::http::client::response::read_body;
use crate::io::runtime::awaited;
use crate::sync::lock;

/// How long one request of a login may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Drives the logins for one MCP server.
pub struct Agent {
    url: Url,
    http: HttpConnections,
    proxies: Arc<Matcher>,
    options: Arc<LoginOptions>,
    pub store: Arc<dyn CredentialStore>,
    hooks: Arc<dyn LoginHooks>,
    timeout: Duration,
    /// The addresses that are connected to in the login that runs: one at a time does.
    guard: Arc<Mutex<UrlGuard>>,
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

impl Agent {
    pub fn new(url: Url, http: ConnectionSettings, logins: &Logins) -> Self {
        let guard = Arc::new(Mutex::new(UrlGuard::new(Zone::Public, false)));
        let watched = guard.clone();
        let allows = move |address| lock(&watched).allows(address);
        let proxies = http.proxies.clone();
        Self {
            url,
            http: HttpConnections::new(http, Some(Arc::new(allows))),
            proxies,
            options: logins.options.clone(),
            store: logins.store.clone(),
            hooks: logins.hooks.clone(),
            timeout: logins.timeout,
            guard,
        }
    }

    /// The URL of the MCP server.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Whether the program has given the client's signing key.
    pub fn has_signing_key(&self) -> bool {
        self.options.signing_key.is_some()
    }

    /// What the MCP server may name, which depends on where it is. `zone` is where its answer came from.
    fn guard(&self, zone: Zone) -> UrlGuard {
        let named = Zone::of_host(&self.url).unwrap_or(Zone::Public);
        // A name alone does not make a server one of this machine.
        let zone = named.max(zone.min(Zone::Private));
        let guard = UrlGuard::new(zone, self.options.allows_private_addresses);
        *lock(&self.guard) = guard;
        guard
    }

    /// The zone of the address that an answer of the MCP server came from. The name is not resolved again:
    /// its owner could give another address then. With a proxy, which resolves names itself, servers count
    /// as public.
    pub fn zone_of(&self, address: Option<SocketAddr>) -> Zone {
        let direct = |to: Uri| self.proxies.intercept(&to).is_none();
        let address = address.filter(|_| uri(&self.url).is_ok_and(direct));
        address.map_or(Zone::Public, |address| Zone::of(address.ip()))
    }

    /// Runs a login or a refresh to its end, because of an answer from that zone.
    pub async fn run(
        &self,
        occasion: Occasion,
        zone: Zone,
    ) -> Result<ServerCredentials, LoginError> {
        let (options, store) = (self.options.clone(), self.store.clone());
        let login = Login::new(options, store, self.guard(zone), occasion, now());
        self.drive(login).await
    }

    /// Ends the tokens of these credentials at their authorization server.
    pub async fn revoke(&self, held: ServerCredentials) -> Result<ServerCredentials, LoginError> {
        let (options, store) = (self.options.clone(), self.store.clone());
        let guard = self.guard(held.reach());
        self.drive(Login::revoke(options, store, guard, held, now()))
            .await
    }

    /// Waits for the store of credentials.
    pub async fn stored<T>(
        &self,
        work: impl Future<Output = Result<T, LoginError>>,
    ) -> Result<T, LoginError> {
        let done = timeout(self.timeout, work).await;
        done.unwrap_or_else(|_| Err(self.late()))
    }

    fn late(&self) -> LoginError {
        let why = format!(
            "the store of credentials, or another login that holds it, took more than {:?}; try again later",
            self.timeout
        );
        LoginError::new(LoginStage::Store, why)
    }

    async fn drive(&self, mut login: Login) -> Result<ServerCredentials, LoginError> {
        loop {
            // A login waits for nothing but the store.
            let Ok(step) = timeout(self.timeout, login.next()).await else {
                // Nobody waits any longer, but what a server has issued is kept.
                if login.is_keeping() {
                    tokio::spawn(awaited(async move { drop(login.next().await) }));
                }
                return Err(self.late());
            };
            let answer = match step? {
                LoginStep::Done(credentials) => return Ok(*credentials),
                LoginStep::Send(request) => match send(&self.http, request).await {
                    Ok(response) => LoginAnswer::Response(response),
                    Err(why) => LoginAnswer::Failed(why),
                },
                LoginStep::Wait(time) => {
                    sleep(time).await;
                    LoginAnswer::Continue
                }
                LoginStep::RedirectUri(known) => {
                    self.asked(self.hooks.redirect_uri(known), LoginAnswer::RedirectUri)
                        .await
                }
                LoginStep::Authorize(page) => {
                    self.asked(self.hooks.authorize(page), LoginAnswer::Callback)
                        .await
                }
                LoginStep::Device(code) => {
                    let shown = self.hooks.show_device_code(code);
                    self.asked(shown, |()| LoginAnswer::Continue).await
                }
                LoginStep::Assertion(request) => {
                    self.asked(self.hooks.assertion(request), LoginAnswer::Assertion)
                        .await
                }
                _ => LoginAnswer::Failed("this release does not know a step of the login".into()),
            };
            login.answer(answer, now());
        }
    }

    /// Waits for the program, which waits for the user.
    async fn asked<T>(
        &self,
        hook: impl Future<Output = Result<T, String>>,
        answer: impl FnOnce(T) -> LoginAnswer,
    ) -> LoginAnswer {
        match timeout(self.timeout, hook).await {
            Ok(Ok(value)) => answer(value),
            Ok(Err(why)) => LoginAnswer::Failed(why),
            Err(_) => LoginAnswer::Failed(format!(
                "nobody answered within {:?}; try again",
                self.timeout
            )),
        }
    }
}

/// Sends a request of a login.
async fn send(http: &HttpConnections, request: OAuthRequest) -> Result<OAuthResponse, String> {
    let url = Url::parse(&request.url).map_err(|_| "this is no URL")?;
    let method = match request.method {
        "POST" => Method::POST,
        _ => Method::GET,
    };
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers {
        let value = HeaderValue::try_from(value);
        let mut value =
            value.map_err(|_| format!("the header {name} has a value that is not allowed"))?;
        value.set_sensitive(matches!(name, "authorization" | "dpop"));
        headers.insert(name, value);
    }
    let answered = timeout(REQUEST_TIMEOUT, async {
        let sent = http.send(method, uri(&url)?, headers, request.body.into());
        let mut response = sent.await?;
        let body = read_body(&mut response, OAuthRequest::MAX_RESPONSE_BYTES).await?;
        Ok((response.head, body))
    });
    let answered = answered
        .await
        .unwrap_or_else(|_| Err(silent(REQUEST_TIMEOUT)));
    let (head, body) = answered.map_err(|error: CarrierError| {
        format!("{}: {error}", url.origin().ascii_serialization())
    })?;
    let headers = head.headers.iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    Ok(OAuthResponse {
        status: head.status.as_u16(),
        headers: headers.collect(),
        body: body.concat(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::http::client::authorization::Authorization;
    use crate::io::http::client::options::{HttpClientOptions, Proxy};

    /// R-AUC-19: what a server may name depends on the address that its answer came from, not on what its
    /// name leads to afterwards.
    #[test]
    fn a_server_reaches_as_far_as_its_own_address() {
        let zone = |url: &str, proxy: Option<&str>, address: Option<&str>, allows: bool| {
            let mut options = LoginOptions::new("Test");
            options.allows_private_addresses = allows;
            let Authorization(logins) = Authorization::new(options);
            let options = HttpClientOptions {
                proxy: proxy.map_or(Proxy::None, |url| Proxy::At(url.into())),
                ..HttpClientOptions::default()
            };
            let http = options.connections(None, &[]).unwrap();
            let agent = Agent::new(url.parse().unwrap(), http, &logins);
            let address = address.map(|address| address.parse().unwrap());
            let guard = agent.guard(agent.zone_of(address));
            assert_eq!(lock(&agent.guard).reach, guard.reach);
            guard.reach
        };
        let (name, local) = ("https://mcp.example/mcp", "http://localhost:1/mcp");
        type Case = (
            &'static str,
            Option<&'static str>,
            Option<&'static str>,
            bool,
            Zone,
        );
        let cases: [Case; 10] = [
            (name, None, Some("1.1.1.1:443"), false, Zone::Public),
            (name, None, Some("1.1.1.1:443"), true, Zone::Private),
            (name, None, Some("10.0.0.1:443"), false, Zone::Private),
            (name, None, Some("127.0.0.1:443"), false, Zone::Private),
            (
                name,
                None,
                Some("169.254.169.254:443"),
                false,
                Zone::Private,
            ),
            (name, None, None, false, Zone::Public),
            (
                name,
                Some("Proxy:3128"),
                Some("10.0.0.1:443"),
                false,
                Zone::Public,
            ),
            (local, Some("Proxy:3128"), None, false, Zone::Loopback),
            (
                "https://10.0.0.1",
                Some("Proxy:3128"),
                None,
                false,
                Zone::Private,
            ),
            (local, None, Some("127.0.0.1:1"), false, Zone::Loopback),
        ];
        for (url, proxy, address, allows, reach) in cases {
            let found = zone(url, proxy, address, allows);
            assert_eq!(found, reach, "{url} {proxy:?} {address:?} {allows}");
        }
    }
}
