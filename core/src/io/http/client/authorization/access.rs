//! The credentials for one server, and the login that all waiting requests share.

use std::sync::{Arc, Mutex};

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use hyper::http::response::Parts;
use mcpbolt_oauth::challenge::Challenge;
use mcpbolt_oauth::client::{LoginError, LoginStage, Occasion, ServerCredentials, Zone};
use tokio::sync::watch;
use url::Url;

use super::agent::{Agent, now};
use crate::error::{CarrierError, CarrierFault, FailedLogin};
use crate::io::http::client::connections::remote_address;
use crate::io::runtime::awaited;
use crate::sync::lock;

/// Most logins for more scopes during one request (R-AUC-16). With the one before, that is three.
const MAX_STEP_UPS: u8 = 2;

/// Most nonces that a server may ask for during one request.
const MAX_NONCES: u8 = 2;

const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The outcome of a login.
type Outcome = Result<Arc<ServerCredentials>, LoginError>;

/// The login that runs for all requests that wait for it; `None` as long as it does.
type Running = watch::Receiver<Option<Outcome>>;

/// The credentials for one server.
pub struct ServerAccess {
    url: Url,
    agent: Agent,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_loaded: bool,
    credentials: Option<Arc<ServerCredentials>>,
    /// The last DPoP nonce of the server.
    nonce: Option<String>,
    running: Option<Running>,
}

/// What was tried for one request.
#[derive(Default)]
pub struct Tries {
    nonces: u8,
    refreshed: bool,
    logged_in: bool,
    step_ups: u8,
}

impl ServerAccess {
    pub fn new(url: Url, agent: Agent) -> Self {
        Self {
            url,
            agent,
            state: Mutex::default(),
        }
    }

    /// Forgets the credentials, after a logout.
    pub fn forget(&self) {
        lock(&self.state).credentials = None;
    }

    /// The credentials to send, if there are any. Those that have ended are refreshed first.
    pub async fn current(self: &Arc<Self>) -> Result<Option<Arc<ServerCredentials>>, CarrierError> {
        let is_loaded = lock(&self.state).is_loaded;
        if !is_loaded {
            let stored = self.agent.stored(async {
                let stored = ServerCredentials::load(&*self.agent.store, self.url.as_str()).await;
                stored.map_err(|error| LoginError::new(LoginStage::Store, error.to_string()))
            });
            let stored = stored.await.map_err(|error| lost(0, None, &error))?;
            let mut state = lock(&self.state);
            if !state.is_loaded {
                state.is_loaded = true;
                state.credentials = state.credentials.take().or(stored.map(Arc::new));
            }
        }
        let credentials = lock(&self.state).credentials.clone();
        let Some(held) = credentials else {
            return Ok(None);
        };
        if !held.tokens().wants_refresh(now()) {
            return Ok(Some(held));
        }
        let occasion = Occasion::new(self.url.as_str(), Some(ServerCredentials::clone(&held)));
        match self.renewed(Some(&held), occasion, held.reach()).await {
            Ok(fresh) => Ok(Some(fresh)),
            // The server's challenge says more about the login.
            Err(error) if error.is_login_needed() => Ok(None),
            Err(error) => Err(lost(0, None, &error)),
        }
    }

    /// Adds the credentials to the headers of a request to the server's own origin (R-AUC-01). Returns the nonce of the
    /// proof.
    pub fn authorize(
        &self,
        held: &ServerCredentials,
        method: &Method,
        url: &Url,
        headers: &mut HeaderMap,
    ) -> Result<Option<String>, CarrierError> {
        let nonce = lock(&self.state).nonce.clone();
        let own = held.headers(method.as_str(), url.as_str(), nonce.as_deref(), now());
        for (name, value) in own.map_err(|error| lost(0, None, &error))? {
            let Ok(mut value) = HeaderValue::try_from(value) else {
                let why = "the access token has characters that no header may have";
                return Err(lost(0, None, &LoginError::new(LoginStage::Token, why)));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(nonce)
    }

    /// Looks at the head of a response of the server's own origin. Returns whether the request is to be sent again,
    /// with other credentials.
    pub async fn sends_again(
        self: &Arc<Self>,
        response: &Parts,
        sent: Option<&Arc<ServerCredentials>>,
        nonce: Option<&str>,
        tries: &mut Tries,
    ) -> Result<bool, CarrierError> {
        let told = response.headers.get(DPOP_NONCE);
        let told = told.and_then(|nonce| nonce.to_str().ok());
        if let Some(told) = told.filter(|_| sent.is_some()) {
            lock(&self.state).nonce = Some(told.to_owned());
        }
        let status = response.status.as_u16();
        if !matches!(status, 401 | 403) {
            return Ok(false);
        }
        let headers = response.headers.get_all(WWW_AUTHENTICATE);
        let challenges = Challenge::parse_all(headers.iter().map(HeaderValue::as_bytes));
        let mut occasion = Occasion {
            status,
            challenges,
            is_refreshed: tries.refreshed,
            ..Occasion::new(
                self.url.as_str(),
                sent.map(|it| ServerCredentials::clone(it)),
            )
        };
        let wants_nonce = occasion.parameter("error") == Some("use_dpop_nonce");
        if status == 401 && wants_nonce && told.is_some() && told != nonce {
            tries.nonces += 1;
            return Ok(tries.nonces <= MAX_NONCES);
        }
        let header = response.headers.get(WWW_AUTHENTICATE);
        let header = header.and_then(|value| value.to_str().ok());
        if status == 403 && !occasion.is_step_up() {
            return Ok(false);
        }
        let is_over = match status {
            401 => tries.logged_in,
            _ => tries.step_ups >= MAX_STEP_UPS,
        };
        if is_over {
            let (stage, why) = match status {
                401 => (
                    LoginStage::Token,
                    "the server refuses the token of the login that has just been made; ask its operator",
                ),
                _ => (
                    LoginStage::StepUp,
                    "the server asks for more and more scopes",
                ),
            };
            return Err(lost(status, header, &LoginError::new(stage, why)));
        }
        if occasion.is_step_up() {
            tries.step_ups += 1;
            occasion.is_refreshed = true;
        }
        let zone = self.agent.zone_of(remote_address(response));
        let mut fresh = self.renewed(sent, occasion.clone(), zone).await;
        // A refresh that others had begun may find that nothing but a login helps, which this answer asks for.
        if fresh.as_ref().is_err_and(LoginError::is_login_needed) {
            fresh = self.renewed(sent, occasion, zone).await;
        }
        let fresh = fresh.map_err(|error| lost(status, header, &error))?;
        match fresh.is_refreshed() {
            true => tries.refreshed = true,
            false if status == 401 => tries.logged_in = true,
            false => {}
        }
        Ok(true)
    }

    /// Replaces credentials, once for all who wait for it. It goes on if they do not wait any longer, and
    /// `wait_for_clients` waits for it: a refresh token may be used up, and a user may be logging in.
    async fn renewed(
        self: &Arc<Self>,
        sent: Option<&Arc<ServerCredentials>>,
        occasion: Occasion,
        zone: Zone,
    ) -> Outcome {
        let mut running = {
            let mut state = lock(&self.state);
            let token = |held: &Arc<ServerCredentials>| held.tokens().access_token.clone();
            if let Some(newer) = &state.credentials
                && sent.map(token) != Some(token(newer))
            {
                return Ok(newer.clone());
            }
            match &state.running {
                // A login that panicked tells nobody.
                Some(running) if running.has_changed().is_ok() => running.clone(),
                _ => {
                    let running = self.clone().begin(occasion, zone);
                    state.running.insert(running).clone()
                }
            }
        };
        let outcome = running.wait_for(Option::is_some).await;
        let outcome = outcome.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| {
            let why =
                "the login broke off: a function of the program panicked, or the runtime has ended";
            Err(LoginError::new(LoginStage::Options, why))
        })
    }

    fn begin(self: Arc<Self>, occasion: Occasion, zone: Zone) -> Running {
        let (sender, running) = watch::channel(None);
        tokio::spawn(awaited(async move {
            let outcome = self.agent.run(occasion, zone).await.map(Arc::new);
            let mut state = lock(&self.state);
            state.running = None;
            match &outcome {
                Ok(fresh) => state.credentials = Some(fresh.clone()),
                Err(error) if error.is_login_needed() => state.credentials = None,
                Err(_) => {}
            }
            sender.send_replace(Some(outcome));
        }));
        running
    }
}

/// The failure of a request that cannot be authorized.
fn lost(status: u16, header: Option<&str>, error: &LoginError) -> CarrierError {
    CarrierError {
        status: (status > 0).then_some(status),
        authenticate: header.map(Box::from),
        login: Some(Box::new(FailedLogin {
            step: error.stage.name(),
            code: error.code.clone(),
        })),
        ..CarrierError::new(CarrierFault::Refused, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use mcpbolt_oauth::client::LoginOptions;

    use super::*;
    use crate::io::http::client::authorization::Authorization;
    use crate::io::http::client::connections::PROTOCOLS;
    use crate::io::http::client::options::{HttpClientOptions, Proxy};
    use crate::io::runtime::runtime;

    /// A request whose token was refused waits for a refresh that others began before the server asked for a
    /// login. That refresh finds that a login is needed: this request logs in.
    #[test]
    fn a_refresh_that_ends_a_login_is_followed_by_a_login() {
        let url: Url = "http://127.0.0.1:9/mcp".parse().unwrap();
        let logins = Authorization::new(LoginOptions::new("Test"));
        let options = HttpClientOptions {
            proxy: Proxy::None,
            ..HttpClientOptions::default()
        };
        let http = options.connections(None, &PROTOCOLS).unwrap();
        let access = logins.server(&url, http);
        let (refresh, running) = watch::channel(None);
        lock(&access.state).running = Some(running);
        let refused = hyper::Response::builder().status(401);
        let refused = refused.header(WWW_AUTHENTICATE, "Bearer").body(());
        let (refused, ()) = refused.unwrap().into_parts();
        let waiting = access.clone();
        let waiting = runtime().unwrap().spawn(async move {
            let mut tries = Tries::default();
            waiting.sends_again(&refused, None, None, &mut tries).await
        });
        // Both it and the access look at the outcome.
        while refresh.receiver_count() < 2 {
            std::thread::yield_now();
        }
        lock(&access.state).running = None;
        let mut ended = LoginError::new(LoginStage::Refresh, "over");
        ended.code = Some("login needed".into());
        assert!(ended.is_login_needed());
        refresh.send_replace(Some(Err(ended)));
        let outcome = crate::client::block_on(waiting).unwrap();
        // The login gets as far as the server, which is not there.
        let login = outcome.unwrap_err().login.unwrap();
        assert_eq!(login.step, LoginStage::Resource.name());
    }
}
