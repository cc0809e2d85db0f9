//! Logins under a client's requests: one for all that wait, and the request is sent again.
#![cfg(feature = "oauth")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::error::{CarrierFault, RequestError};
use mcpbolt::io::ConnectOptions;
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::io::login::{
    Authorization, AuthorizationPage, CredentialStore, FileStore, Grant, Hooked, KeyLock,
    LoggedOut, LoginHooks, LoginOptions, LoginStage, MemoryStore, ServerCredentials, SigningKey,
    Stored,
};
use serde_json::json;

use super::scripted::{Request, Scripted, Wire};

/// What the server does, and what it counts.
#[derive(Clone, Debug, Default)]
struct Site {
    tokens: Arc<AtomicUsize>,
    pages: Arc<AtomicUsize>,
    /// How long tokens are valid, in seconds.
    expires_in: u64,
    /// Whether it refuses the user.
    refuses: bool,
    /// Whether it refuses every token.
    is_deaf: bool,
    /// Whether it wants a further scope, or nonce, each time.
    wants_scopes: bool,
    wants_nonces: bool,
    requests: Arc<AtomicUsize>,
    revoked: Arc<AtomicUsize>,
}

impl Site {
    fn serve(&self) -> Scripted {
        let site = self.clone();
        Scripted::stateless(move |request, wire| site.answer(request, wire))
    }

    fn answer(&self, request: &Request, wire: &mut Wire) {
        match &*request.path {
            "/mcp" => {}
            "/register" => return wire.json(&json!({"client_id": "id"})),
            "/revoke" => {
                self.revoked.fetch_add(1, Ordering::SeqCst);
                return wire.json(&json!({}));
            }
            "/.well-known/oauth-authorization-server" => {
                let issuer = format!("http://{}", request.header("host").unwrap());
                let place = |path: &str| format!("{issuer}/{path}");
                return wire.json(&json!({
                    "issuer": issuer, "authorization_endpoint": place("authorize"),
                    "token_endpoint": place("token"), "registration_endpoint": place("register"),
                    "revocation_endpoint": place("revoke"),
                    "code_challenge_methods_supported": ["S256"],
                }));
            }
            "/token" => {
                let number = self.tokens.fetch_add(1, Ordering::SeqCst) + 1;
                let kind = if self.wants_nonces { "DPoP" } else { "Bearer" };
                return wire.json(&json!({
                    "access_token": format!("t{number}"), "token_type": kind,
                    "expires_in": self.expires_in, "refresh_token": format!("r{number}"),
                }));
            }
            _ => return wire.answer(404, "", ""),
        }
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        if self.wants_nonces && request.header("authorization").is_some() {
            let nonce = format!("DPoP-Nonce: n{number}\r\n");
            let headers = format!("WWW-Authenticate: DPoP error=\"use_dpop_nonce\"\r\n{nonce}");
            return wire.answer(401, &headers, "");
        }
        if self.wants_scopes && request.header("authorization").is_some() {
            let headers = format!(
                "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"s{number}\"\r\n"
            );
            return wire.answer(403, &headers, "");
        }
        let newest = format!("Bearer t{}", self.tokens.load(Ordering::SeqCst));
        if self.is_deaf || request.header("authorization") != Some(&newest) {
            let headers = "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n";
            return wire.answer(401, headers, "");
        }
        wire.json(&request.said("done"));
    }

    fn authorization(&self) -> Authorization {
        let mut options = LoginOptions::new("Test");
        options.dpop = self.wants_nonces.then_some(true);
        Authorization::new(options).with_hooks(self.clone())
    }
}

impl LoginHooks for Site {
    fn redirect_uri(&self, _known: Option<String>) -> Hooked<'_, String> {
        Box::pin(async { Ok("http://127.0.0.1:9/callback".into()) })
    }

    fn authorize(&self, page: AuthorizationPage) -> Hooked<'_, String> {
        self.pages.fetch_add(1, Ordering::SeqCst);
        let answer = if self.refuses {
            "error=access_denied"
        } else {
            "code=c"
        };
        Box::pin(async move { Ok(format!("{answer}&state={}", page.state)) })
    }
}

fn options(authorization: &Authorization) -> HttpClientOptions {
    HttpClientOptions {
        authorization: Some(authorization.clone()),
        ..HttpClientOptions::default()
    }
}

fn calls(
    server: &Scripted,
    options: HttpClientOptions,
    count: usize,
) -> Vec<Result<(), RequestError>> {
    let client = server.with(Client::builder("test", "1"), options);
    let calls = (0..count).map(|_| client.call_tool("t", &json!({})));
    let calls: Vec<_> = calls.map(IntoFuture::into_future).collect();
    block_on(futures::future::join_all(calls))
        .into_iter()
        .map(|call| call.map(drop))
        .collect()
}

/// R-AUC-01, R-AUC-03
#[test]
fn one_login_serves_all_who_wait_for_it() {
    let site = Site {
        expires_in: 3600,
        ..Site::default()
    };
    let server = site.serve();
    let authorization = site.authorization();
    for _ in 0..2 {
        // The second client has the first one's token.
        for outcome in calls(&server, options(&authorization), 16) {
            outcome.unwrap();
        }
        assert_eq!(site.pages.load(Ordering::SeqCst), 1);
        assert_eq!(site.tokens.load(Ordering::SeqCst), 1);
    }
}

/// R-AUC-17: what has ended is refreshed, once for all, without the user.
#[test]
fn tokens_are_refreshed_before_they_are_sent() {
    let folder = std::env::temp_dir().join(format!("mcpbolt-logins-{}", std::process::id()));
    let store = FileStore::at(&folder);
    let site = Site::default();
    let server = site.serve();
    let authorization = site.authorization().with_store(store.clone());
    // Each token has ended when it comes.
    for before in 1..4 {
        for outcome in calls(&server, options(&authorization), 1) {
            outcome.unwrap();
        }
        assert_eq!(site.pages.load(Ordering::SeqCst), 1);
        assert!(site.tokens.load(Ordering::SeqCst) >= before);
    }
    // Another process goes on with what is kept.
    let again = site.authorization().with_store(store.clone());
    calls(&server, options(&again), 1).remove(0).unwrap();
    assert_eq!(site.pages.load(Ordering::SeqCst), 1);
    let kept = block_on(ServerCredentials::load(&store, &server.url())).unwrap();
    assert!(kept.is_some());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn who_waits_learns_why_there_is_no_login() {
    let refused = Site {
        refuses: true,
        expires_in: 3600,
        ..Site::default()
    };
    let deaf = Site {
        is_deaf: true,
        expires_in: 3600,
        ..Site::default()
    };
    for (site, expected, pages) in [
        (
            refused,
            "asking the user for consent: the authorization server answered access_denied",
            1,
        ),
        (
            deaf,
            "refuses the token of the login that has just been made",
            1,
        ),
    ] {
        let server = site.serve();
        for outcome in calls(&server, options(&site.authorization()), 1) {
            let RequestError::Carrier(error) = outcome.unwrap_err() else {
                panic!("not the carrier");
            };
            assert_eq!(
                (error.fault, error.status),
                (CarrierFault::Refused, Some(401))
            );
            assert!(error.why.contains(expected), "{}", error.why);
        }
        assert_eq!(site.pages.load(Ordering::SeqCst), pages);
    }
}

/// A store that never answers.
struct Deaf;

fn never<T: Send + 'static>() -> Stored<'static, T> {
    Box::pin(std::future::pending())
}

impl CredentialStore for Deaf {
    fn load<'a>(&'a self, _key: &'a str) -> Stored<'a, Option<String>> {
        never()
    }

    fn save<'a>(&'a self, _key: &'a str, _document: &'a str) -> Stored<'a, ()> {
        never()
    }

    fn remove<'a>(&'a self, _key: &'a str) -> Stored<'a, ()> {
        never()
    }

    fn lock<'a>(&'a self, _key: &'a str) -> Stored<'a, KeyLock> {
        never()
    }
}

#[test]
fn a_store_that_never_answers_keeps_nobody_waiting() {
    let site = Site::default();
    let server = site.serve();
    let authorization = site.authorization().with_store(Deaf);
    let authorization = authorization.with_timeout(Duration::from_millis(50));
    let builder = Client::builder("test", "1");
    let opened = block_on(builder.http(&server.url(), options(&authorization)));
    let error = opened.unwrap_err().to_string();
    assert!(error.contains("the store of credentials"), "{error}");
    let left = block_on(authorization.log_out(&server.url(), &HttpClientOptions::default()));
    assert_eq!(left.unwrap_err().stage, LoginStage::Store);
}

/// A store that neither saves nor removes while it is busy.
#[derive(Clone, Default)]
struct Busy {
    kept: Arc<MemoryStore>,
    is_busy: Arc<AtomicBool>,
}

impl Busy {
    async fn idle(&self) {
        while self.is_busy.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn kept(&self, url: &str) -> Option<ServerCredentials> {
        block_on(ServerCredentials::load(&*self.kept, url)).unwrap()
    }
}

impl CredentialStore for Busy {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<String>> {
        self.kept.load(key)
    }

    fn save<'a>(&'a self, key: &'a str, document: &'a str) -> Stored<'a, ()> {
        Box::pin(async move {
            self.idle().await;
            self.kept.save(key, document).await
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        Box::pin(async move {
            self.idle().await;
            self.kept.remove(key).await
        })
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, KeyLock> {
        self.kept.lock(key)
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// R-AUC-17: the server replaces refresh tokens. Its answer is kept, and tokens are revoked, even if the store takes
/// longer than anybody waits.
#[test]
fn a_slow_store_loses_no_tokens() {
    let (site, store) = (Site::default(), Busy::default());
    let server = site.serve();
    let quick = Duration::from_secs(2);
    let authorization = site.authorization().with_store(store.clone());
    let authorization = authorization.with_timeout(quick);
    let call = || calls(&server, options(&authorization), 1).remove(0);
    call().unwrap();
    store.is_busy.store(true, Ordering::SeqCst);
    let client = Client::builder("test", "1");
    let opened = block_on(client.http(&server.url(), options(&authorization)));
    opened.unwrap_err();
    let newest = format!("r{}", site.tokens.load(Ordering::SeqCst));
    let refresh = || store.kept(&server.url())?.tokens().refresh_token.clone();
    assert_ne!(refresh(), Some(newest.clone()));
    store.is_busy.store(false, Ordering::SeqCst);
    until("kept", || refresh() == Some(newest.clone()));
    call().unwrap();
    assert_eq!(site.pages.load(Ordering::SeqCst), 1);
    store.is_busy.store(true, Ordering::SeqCst);
    let left = block_on(authorization.log_out(&server.url(), &HttpClientOptions::default()));
    assert_eq!(left.unwrap_err().stage, LoginStage::Store);
    store.is_busy.store(false, Ordering::SeqCst);
    until("revoked", || site.revoked.load(Ordering::SeqCst) == 2);
    assert!(store.kept(&server.url()).is_none());
}

/// Clients that are open when their login ends do not go on with its tokens.
#[test]
fn a_logout_is_one_for_open_clients_too() {
    let site = Site {
        expires_in: 3600,
        ..Site::default()
    };
    let server = site.serve();
    let authorization = site.authorization();
    let client = server.with(Client::builder("test", "1"), options(&authorization));
    let call = || block_on(client.call_tool("t", &json!({})).into_future());
    call().unwrap();
    let left = block_on(authorization.log_out(&server.url(), &HttpClientOptions::default()));
    assert_eq!(left.unwrap(), LoggedOut::Revoked);
    call().unwrap();
    assert_eq!(site.pages.load(Ordering::SeqCst), 2);
}

/// A client that signs its requests cannot have its tokens ended without its key: they stay until it is given.
#[test]
fn a_login_with_a_signing_key_ends_with_that_key() {
    let folder = std::env::temp_dir().join(format!("mcpbolt-signed-{}", std::process::id()));
    let store = FileStore::at(&folder);
    let site = Site {
        expires_in: 3600,
        ..Site::default()
    };
    let server = site.serve();
    let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let mut login = LoginOptions::new("Test");
    login.client_id = Some("own".into());
    login.signing_key = Some(SigningKey::from_pem(pem.as_bytes(), "ES256").unwrap());
    let signing = Authorization::new(login).with_store(store.clone());
    let signing = signing.with_hooks(site.clone());
    calls(&server, options(&signing), 1).remove(0).unwrap();
    let leave = |authorization: &Authorization| {
        let options = HttpClientOptions::default();
        block_on(authorization.log_out(&server.url(), &options))
    };
    let other = site.authorization().with_store(store.clone());
    let error = leave(&other).unwrap_err();
    assert!(error.to_string().contains("signing key"), "{error}");
    let kept = block_on(ServerCredentials::load(&store, &server.url())).unwrap();
    assert!(kept.is_some_and(|kept| kept.needs_signing_key()));
    assert_eq!(leave(&signing).unwrap(), LoggedOut::Revoked);
    assert_eq!(site.revoked.load(Ordering::SeqCst), 2);
    assert_eq!(leave(&signing).unwrap(), LoggedOut::NotLoggedIn);
    std::fs::remove_dir_all(folder).unwrap();
}

/// R-AUE-04
#[test]
fn a_grant_that_is_an_extension_is_declared() {
    let mut login = LoginOptions::new("Test");
    login.client_id = Some("own".into());
    login.client_secret = Some("secret".into());
    login.grant = Grant::ClientCredentials;
    let site = Site {
        expires_in: 3600,
        ..Site::default()
    };
    let server = site.serve();
    let authorization = Authorization::new(login);
    let open = |builder: ClientBuilder| server.with(builder, options(&authorization));
    block_on(
        open(Client::builder("test", "1"))
            .call_tool("t", &json!({}))
            .into_future(),
    )
    .unwrap();
    let asked = server.asked("tools/call");
    let declared = &asked[0].body["params"]["_meta"];
    assert!(
        declared
            .to_string()
            .contains("io.modelcontextprotocol/oauth-client-credentials")
    );
}

/// R-AUC-16
#[test]
fn a_server_that_wants_more_and_more_is_given_up() {
    let scopes = Site {
        expires_in: 3600,
        wants_scopes: true,
        ..Site::default()
    };
    let nonces = Site {
        expires_in: 3600,
        wants_nonces: true,
        ..Site::default()
    };
    for (site, pages, status) in [(scopes, 3, 403), (nonces, 1, 401)] {
        let server = site.serve();
        let outcome = calls(&server, options(&site.authorization()), 1).remove(0);
        let Err(RequestError::Carrier(error)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(error.status, Some(status), "{error:?}");
        assert_eq!(site.pages.load(Ordering::SeqCst), pages);
        assert!(site.requests.load(Ordering::SeqCst) <= 5, "{site:?}");
    }
}

#[test]
fn a_login_for_a_server_that_is_not_on_http_is_refused() {
    for address in ["ws://127.0.0.1:1/", "tcp:127.0.0.1:1"] {
        let options = ConnectOptions {
            http: options(&Site::default().authorization()),
            ..ConnectOptions::default()
        };
        let address = address.parse().unwrap();
        let opening = Client::builder("test", "1").open(&address, options);
        let why = block_on(opening).unwrap_err().to_string();
        assert!(why.starts_with("a login is for a server on HTTP"), "{why}");
    }
}
