//! An MCP server, its authorization server and its user, without sockets or clocks.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::executor::block_on;
use mcpbolt_oauth::challenge::Challenge;
use mcpbolt_oauth::client::{
    Login, LoginAnswer, LoginError, LoginOptions, LoginStep, OAuthRequest, OAuthResponse, Occasion,
    ServerCredentials, UrlGuard, Zone,
};
use mcpbolt_oauth::store::MemoryStore;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

pub const SERVER: &str = "https://mcp.example/mcp";
pub const ISSUER: &str = "https://as.example";
pub const PRM: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
pub const AS: &str = "https://as.example/.well-known/oauth-authorization-server";
pub const SECRETS: [&str; 6] = [
    "secret-access",
    "secret-refresh",
    "secret-client",
    "secret-code",
    "secret-assertion",
    "secret-device",
];

/// A response: a status, headers, a body.
pub type Reply = (u16, Vec<(&'static str, String)>, Value);

pub struct World {
    pub options: LoginOptions,
    pub store: Arc<MemoryStore>,
    pub guard: UrlGuard,
    /// Documents by URL: a text is a redirect, a number another status.
    pub documents: Vec<(String, Value)>,
    /// Answers of registration, then of tokens, other than the usual ones. Status 0 is no answer.
    pub registration: Value,
    pub tokens: VecDeque<Reply>,
    /// What the browser comes back with, other than `code`, `state` and `iss`.
    pub callback: Option<fn(&str) -> String>,
    pub known: Option<String>,
    pub redirect_uri: String,
    pub now: u64,
    /// The answer of the device authorization endpoint.
    pub device: Value,
    /// How long a request without an answer takes, in seconds.
    pub silence: u64,
    /// What was asked: `GET url`, or `POST url form`.
    pub log: Vec<String>,
    pub pages: Vec<Url>,
    pub requests: Vec<OAuthRequest>,
    pub waited: u64,
}

impl World {
    pub fn new() -> Self {
        Self {
            options: LoginOptions::new("Test"),
            store: Arc::default(),
            guard: UrlGuard::new(Zone::Public, false),
            documents: vec![
                (
                    PRM.into(),
                    json!({"resource": SERVER, "authorization_servers": [ISSUER]}),
                ),
                (AS.into(), metadata(ISSUER)),
            ],
            registration: json!({"client_id": "dynamic"}),
            tokens: VecDeque::new(),
            callback: None,
            known: None,
            redirect_uri: "http://127.0.0.1:4000/callback".into(),
            now: 1_000_000,
            device: json!({
                "device_code": "secret-device", "user_code": "ABCD-EFGH", "expires_in": 60, "interval": 10,
                "verification_uri": "https://as.example/device",
            }),
            silence: 0,
            log: Vec::new(),
            pages: Vec::new(),
            requests: Vec::new(),
            waited: 0,
        }
    }

    /// The document at a URL, to be changed.
    pub fn document(&mut self, url: &str) -> &mut Value {
        let at = self.documents.iter().position(|(own, _)| own == url);
        &mut self.documents[at.unwrap()].1
    }

    pub fn log_in(&mut self) -> Result<ServerCredentials, LoginError> {
        self.challenged(&format!(r#"Bearer resource_metadata="{PRM}""#))
    }

    /// Logs in because the server refuses what there is.
    pub fn challenged(&mut self, challenge: &str) -> Result<ServerCredentials, LoginError> {
        let held = block_on(ServerCredentials::load(&*self.store, SERVER));
        self.run(Occasion {
            status: 401,
            challenges: Challenge::parse_all([challenge.as_bytes()]),
            is_refreshed: true,
            ..Occasion::new(SERVER, held.ok().flatten())
        })
    }

    pub fn run(&mut self, occasion: Occasion) -> Result<ServerCredentials, LoginError> {
        let options = Arc::new(self.options.clone());
        let mut login = Login::new(options, self.store.clone(), self.guard, occasion, self.now);
        loop {
            let answer = match block_on(login.next())? {
                LoginStep::Done(credentials) => return Ok(*credentials),
                LoginStep::Send(request) => self.answer(request),
                LoginStep::RedirectUri(known) => {
                    self.known = known;
                    LoginAnswer::RedirectUri(self.redirect_uri.clone())
                }
                LoginStep::Authorize(page) => {
                    self.pages.push(Url::parse(&page.url).unwrap());
                    let usual = |state: &str| {
                        format!("code=secret-code&state={state}&iss=https%3A%2F%2Fas.example")
                    };
                    let query = self
                        .callback
                        .map_or_else(|| usual(&page.state), |it| it(&page.state));
                    LoginAnswer::Callback(format!("{}?{query}", page.redirect_uri))
                }
                LoginStep::Device(code) => {
                    self.log.push(format!("show {}", code.user_code));
                    LoginAnswer::Continue
                }
                LoginStep::Assertion(request) => {
                    self.log.push(format!("assertion for {}", request.issuer));
                    LoginAnswer::Assertion("secret-assertion".into())
                }
                LoginStep::Wait(time) => {
                    self.waited += time.as_secs();
                    self.now += time.as_secs();
                    LoginAnswer::Continue
                }
                step => panic!("{step:?}"),
            };
            login.answer(answer, self.now);
        }
    }

    pub fn answer(&mut self, request: OAuthRequest) -> LoginAnswer {
        let OAuthRequest {
            method, url, body, ..
        } = &request;
        self.log
            .push(format!("{method} {url} {body}").trim().to_owned());
        let is_token = url.ends_with("/token");
        let (status, headers, body) = match *method {
            "GET" => match self.documents.iter().find(|(own, _)| own == url) {
                Some((_, Value::String(to))) => (302, vec![("location", to.clone())], Value::Null),
                Some((_, Value::Number(status))) => {
                    (status.as_u64().unwrap() as u16, Vec::new(), Value::Null)
                }
                Some((_, document)) => (200, Vec::new(), document.clone()),
                None => (404, Vec::new(), Value::Null),
            },
            _ if url.ends_with("/register") => (201, Vec::new(), self.registration.clone()),
            _ if url.ends_with("/device") => (200, Vec::new(), self.device.clone()),
            _ if is_token => self.tokens.pop_front().unwrap_or_else(tokens),
            _ => (404, Vec::new(), Value::Null),
        };
        self.requests.push(request);
        if status == 0 {
            self.now += self.silence;
            return LoginAnswer::Failed("unreachable".into());
        }
        let headers = headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        LoginAnswer::Response(OAuthResponse {
            status,
            headers: headers.collect(),
            body: body.to_string().into_bytes(),
        })
    }

    /// The forms that were posted to the token endpoint.
    pub fn forms(&self) -> Vec<Vec<(String, String)>> {
        let posts = self.requests.iter().filter(|it| it.url.ends_with("/token"));
        let pairs = |it: &OAuthRequest| {
            form_urlencoded::parse(it.body.as_bytes())
                .into_owned()
                .collect()
        };
        posts.map(pairs).collect()
    }

    pub fn page(&self, name: &str) -> Option<String> {
        get(
            &self
                .pages
                .last()?
                .query_pairs()
                .into_owned()
                .collect::<Vec<_>>(),
            name,
        )
    }

    /// The documents that were asked for.
    pub fn gets(&self) -> Vec<&str> {
        let gets = self.log.iter().filter_map(|line| line.strip_prefix("GET "));
        gets.collect()
    }
}

pub fn get(form: &[(String, String)], name: &str) -> Option<String> {
    let found = form.iter().find(|(own, _)| own == name);
    found.map(|(_, value)| value.clone())
}

pub fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "device_authorization_endpoint": format!("{issuer}/device"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
    })
}

pub fn tokens() -> Reply {
    let body = json!({
        "access_token": "secret-access", "token_type": "Bearer", "expires_in": 3600,
        "refresh_token": "secret-refresh",
    });
    (200, Vec::new(), body)
}

pub fn error(code: &str) -> Reply {
    (
        400,
        Vec::new(),
        json!({"error": code, "error_description": "said"}),
    )
}
