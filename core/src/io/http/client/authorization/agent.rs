//! Drives a login: sends its requests, asks the user.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcpbolt_oauth::client::{
    Answer, Credentials, Login, LoginError, LoginOptions, LoginStage, OAuthRequest, OAuthResponse,
    Occasion, Step, UrlGuard, Zone,
};
use mcpbolt_oauth::store::CredentialStore;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, ClientBuilder, Method, Request, Url};
use tokio::net::lookup_host;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

use super::Logins;
use super::hooks::LoginHooks;
use super::resolver::GuardedResolver;
use crate::io::http::client::failure::failure;
use crate::io::http::client::response::read_body;
use crate::sync::lock;

/// How long one request of a login may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Drives the logins for one MCP server.
pub struct Agent {
    url: Url,
    http: Mutex<Option<ClientBuilder>>,
    /// Hosts of proxies, which the user chose.
    proxies: HashSet<String>,
    options: Arc<LoginOptions>,
    pub store: Arc<dyn CredentialStore>,
    hooks: Arc<dyn LoginHooks>,
    timeout: Duration,
    /// The client, and which URLs it uses: it depends on where the MCP server is.
    client: OnceCell<(Client, UrlGuard)>,
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

impl Agent {
    pub fn new(url: Url, http: ClientBuilder, proxies: HashSet<String>, logins: &Logins) -> Self {
        Self {
            url,
            http: Mutex::new(Some(http)),
            proxies,
            options: logins.options.clone(),
            store: logins.store.clone(),
            hooks: logins.hooks.clone(),
            timeout: logins.timeout,
            client: OnceCell::new(),
        }
    }

    async fn client(&self) -> Result<&(Client, UrlGuard), LoginError> {
        let wrong = |why: String| LoginError::new(LoginStage::Options, why);
        let made = self.client.get_or_try_init(async || {
            let guard = UrlGuard::new(self.zone().await, self.options.allows_private_addresses);
            let resolver = GuardedResolver {
                guard,
                proxies: self.proxies.clone(),
            };
            let http = lock(&self.http).take();
            let http = http.ok_or_else(|| wrong("there is no HTTP client".into()))?;
            let client = http.dns_resolver(resolver).build();
            let client = client.map_err(|error| wrong(error.without_url().to_string()))?;
            Ok((client, guard))
        });
        made.await
    }

    /// Where the MCP server is. By its name alone, a server is not on this machine.
    async fn zone(&self) -> Zone {
        if let Some(zone) = Zone::of_host(&self.url) {
            return zone;
        }
        let host = self.url.host_str().unwrap_or_default();
        let addresses = lookup_host((host, 0)).await;
        let zones = addresses.into_iter().flatten().map(|it| Zone::of(it.ip()));
        // A proxy may know a name that this machine does not.
        zones.min().unwrap_or(Zone::Public).min(Zone::Private)
    }

    /// Runs a login or a refresh to its end.
    pub async fn run(&self, occasion: Occasion) -> Result<Credentials, LoginError> {
        let (client, guard) = self.client().await?;
        let (options, store) = (self.options.clone(), self.store.clone());
        self.drive(Login::new(options, store, *guard, occasion, now()), client)
            .await
    }

    /// Ends the tokens of these credentials at their authorization server.
    pub async fn revoke(&self, held: Credentials) -> Result<Credentials, LoginError> {
        let (client, guard) = self.client().await?;
        let (options, store) = (self.options.clone(), self.store.clone());
        self.drive(Login::revoke(options, store, *guard, held, now()), client)
            .await
    }

    async fn drive(&self, mut login: Login, client: &Client) -> Result<Credentials, LoginError> {
        loop {
            let answer = match login.next().await? {
                Step::Done(credentials) => return Ok(*credentials),
                Step::Send(request) => match send(client, request).await {
                    Ok(response) => Answer::Response(response),
                    Err(why) => Answer::Failed(why),
                },
                Step::Wait(time) => {
                    sleep(time).await;
                    Answer::Continue
                }
                Step::RedirectUri(known) => {
                    self.asked(self.hooks.redirect_uri(known), Answer::RedirectUri)
                        .await
                }
                Step::Authorize(page) => {
                    self.asked(self.hooks.authorize(page), Answer::Callback)
                        .await
                }
                Step::Device(code) => {
                    let shown = self.hooks.show_device_code(code);
                    self.asked(shown, |()| Answer::Continue).await
                }
                Step::Assertion(request) => {
                    self.asked(self.hooks.assertion(request), Answer::Assertion)
                        .await
                }
                _ => Answer::Failed("this release does not know a step of the login".into()),
            };
            login.answer(answer, now());
        }
    }

    /// Waits for the program, which waits for the user.
    async fn asked<T>(
        &self,
        hook: impl Future<Output = Result<T, String>>,
        answer: impl FnOnce(T) -> Answer,
    ) -> Answer {
        match timeout(self.timeout, hook).await {
            Ok(Ok(value)) => answer(value),
            Ok(Err(why)) => Answer::Failed(why),
            Err(_) => Answer::Failed(format!(
                "nobody answered within {} s; try again",
                self.timeout.as_secs()
            )),
        }
    }
}

/// Sends a request of a login.
async fn send(client: &Client, request: OAuthRequest) -> Result<OAuthResponse, String> {
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
    let place = url.origin().ascii_serialization();
    let mut sent = Request::new(method, url);
    *sent.headers_mut() = headers;
    *sent.timeout_mut() = Some(REQUEST_TIMEOUT);
    *sent.body_mut() = (!request.body.is_empty()).then(|| request.body.into());
    let at = |error: crate::error::CarrierError| format!("{place}: {error}");
    let response = client.execute(sent).await;
    let mut response = response.map_err(|error| at(failure(error)))?;
    let body = read_body(&mut response, OAuthRequest::MAX_RESPONSE_BYTES).await;
    let headers = response.headers().iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    Ok(OAuthResponse {
        status: response.status().as_u16(),
        headers: headers.collect(),
        body: body.map_err(at)?.concat(),
    })
}
