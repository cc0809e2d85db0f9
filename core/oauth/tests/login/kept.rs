//! What is kept of logins: for each URL, whole, for whom it is meant, and no further than that.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::executor::block_on;
use mcpbolt_oauth::challenge::Challenge;
use mcpbolt_oauth::client::{
    Grant, Login, LoginAnswer, LoginStage, LoginStep, Occasion, ServerCredentials, UrlGuard, Zone,
};
use mcpbolt_oauth::store::{CredentialStore, KeyLock, MemoryStore, Stored};
use serde_json::{Value, json};

use crate::world::{ISSUER, PRM, SERVER, World, error, metadata, tokens};

/// Another URL of the resource `SERVER`.
const SECOND: &str = "https://mcp.example/mcp/second";
const OTHER: &str = "https://other.example";

fn refused(url: &str) -> Occasion {
    let challenge = format!(r#"Bearer resource_metadata="{PRM}""#);
    Occasion {
        status: 401,
        challenges: Challenge::parse_all([challenge.as_bytes()]),
        is_refreshed: true,
        ..Occasion::new(url, None)
    }
}

impl World {
    fn get_token(&mut self, url: &str, token: &str) {
        let (status, headers, mut body) = tokens();
        body["access_token"] = token.into();
        self.tokens.push_back((status, headers, body));
        let held = block_on(ServerCredentials::load(&*self.store, url)).unwrap();
        self.run(Occasion {
            held,
            ..refused(url)
        })
        .unwrap();
    }

    fn kept(&self, url: &str) -> Option<String> {
        let kept = block_on(ServerCredentials::load(&*self.store, url)).unwrap();
        kept.map(|kept| kept.tokens().access_token.clone())
    }

    fn put(&self, key: &str, document: &Value) {
        block_on(self.store.save(key, &document.to_string())).unwrap();
    }

    /// A program with a client that was registered by hand, and a second authorization server.
    fn with_secret() -> Self {
        let mut world = Self::new();
        world.options.client_id = Some("own".into());
        world.options.client_secret = Some("secret-client".into());
        world.options.grant = Grant::ClientCredentials;
        let place = format!("{OTHER}/.well-known/oauth-authorization-server");
        world.documents.push((place, metadata(OTHER)));
        world
    }

    fn begin(&self, occasion: Occasion) -> Login {
        let options = Arc::new(self.options.clone());
        Login::new(options, self.store.clone(), self.guard, occasion, self.now)
    }

    /// Goes on until the token endpoint is to be asked.
    fn until_token(&mut self, login: &mut Login) -> LoginAnswer {
        loop {
            let LoginStep::Send(request) = block_on(login.next()).unwrap() else {
                panic!("only requests were expected");
            };
            let is_token = request.url.ends_with("/token");
            let answer = self.answer(request);
            if is_token {
                return answer;
            }
            login.answer(answer, self.now);
        }
    }
}

#[test]
fn urls_of_one_resource_have_tokens_of_their_own() {
    let mut world = World::new();
    world.get_token(SERVER, "first");
    world.get_token(SECOND, "second");
    let kept = |world: &World| (world.kept(SERVER), world.kept(SECOND));
    let both = |first: &str, second: &str| (Some(first.to_owned()), Some(second.to_owned()));
    assert_eq!(kept(&world), both("first", "second"));
    // Another client, and a logout, change the tokens of one URL.
    world.options.client_id = Some("own".into());
    world.get_token(SERVER, "third");
    assert_eq!(kept(&world), both("third", "second"));
    block_on(ServerCredentials::forget(&*world.store, SERVER)).unwrap();
    assert_eq!(kept(&world), (None, Some("second".to_owned())));
}

/// The document about a server of a release that kept the tokens of a resource for all of its URLs.
fn old_document(token_endpoint: &str) -> Value {
    json!({
        "version": 1, "issuer": ISSUER, "resource": SERVER, "token_endpoint": token_endpoint,
        "client": {"version": 1, "client_id": "dynamic", "authentication": "none"},
    })
}

fn old_tokens() -> Value {
    json!({
        "version": 1, "generation": 1, "access_token": "old", "token_type": "Bearer",
        "expires_at": 1_003_600, "refresh_token": "secret-refresh",
    })
}

#[test]
fn a_login_leaves_the_tokens_of_an_older_release_to_other_urls() {
    let mut world = World::new();
    for url in [SERVER, SECOND] {
        world.put(
            &format!("server {url}"),
            &old_document("https://as.example/token"),
        );
    }
    world.put(&format!("tokens {ISSUER} dynamic {SERVER}"), &old_tokens());
    assert_eq!(world.kept(SERVER).as_deref(), Some("old"));
    world.options.client_id = Some("own".into());
    world.get_token(SERVER, "new");
    assert_eq!(world.kept(SERVER).as_deref(), Some("new"));
    assert_eq!(world.kept(SECOND).as_deref(), Some("old"));
}

/// R-AUC-19: a refresh goes as far as the login could, and no further.
#[test]
fn the_reach_of_a_login_is_kept() {
    for (guard, reach) in [
        (UrlGuard::new(Zone::Public, false), Zone::Public),
        (UrlGuard::new(Zone::Public, true), Zone::Private),
        (UrlGuard::new(Zone::Loopback, false), Zone::Loopback),
    ] {
        let mut world = World::new();
        world.guard = guard;
        assert_eq!(world.log_in().unwrap().reach(), reach);
        let loaded = block_on(ServerCredentials::load(&*world.store, SERVER)).unwrap();
        assert_eq!(loaded.unwrap().reach(), reach);
    }
}

/// R-AUC-19: a document that does not say how far reaches nothing inside.
#[test]
fn a_login_of_an_older_release_reaches_the_internet_alone() {
    for inside in [
        "https://10.0.0.1/token",
        "https://127.0.0.1/token",
        "http://localhost/token",
    ] {
        let mut world = World::new();
        world.put(&format!("server {SERVER}"), &old_document(inside));
        world.put(&format!("tokens {ISSUER} dynamic {SERVER}"), &old_tokens());
        let held = block_on(ServerCredentials::load(&*world.store, SERVER)).unwrap();
        let held = held.unwrap();
        assert_eq!(held.reach(), Zone::Public);
        world.now += 3600;
        world.guard = UrlGuard::new(held.reach(), false);
        let why = world
            .run(Occasion::new(SERVER, Some(held.clone())))
            .unwrap_err();
        assert!(why.is_login_needed() && world.requests.is_empty(), "{why}");
        // The server itself is asked next. If its answer comes from inside, the tokens are refreshed there.
        world.guard = UrlGuard::new(Zone::Loopback, false);
        world.run(Occasion::new(SERVER, Some(held))).unwrap();
        assert_eq!(world.log.len(), 1, "{:?}", world.log);
    }
}

/// R-AUC-13: the secret of a client goes to the authorization server that knows it.
#[test]
fn a_secret_stays_with_the_authorization_server_that_accepted_it() {
    let mut world = World::with_secret();
    // Neither a refusal nor silence is acceptance.
    for said in [error("invalid_client"), (0, Vec::new(), json!(null))] {
        world.tokens.push_back(said);
        world.log_in().unwrap_err();
    }
    world.document(PRM)["authorization_servers"] = json!([OTHER]);
    world.log_in().unwrap();
    world.document(PRM)["authorization_servers"] = json!([ISSUER]);
    let before = world.forms().len();
    let error = world.log_in().unwrap_err();
    assert_eq!(error.stage, LoginStage::Registration);
    assert!(
        error.to_string().contains(ISSUER) && error.to_string().contains(OTHER),
        "{error}"
    );
    assert_eq!(world.forms().len(), before);
    // With `issuer`, there is no pin.
    world.options.issuer = Some(ISSUER.into());
    world.log_in().unwrap();
    // Without a secret, there is nothing to keep.
    world.options.issuer = None;
    world.options.client_secret = None;
    world.options.grant = Grant::AuthorizationCode;
    world.log_in().unwrap();
}

/// Two servers that name different authorization servers at the same time: one of those gets the secret.
#[test]
fn a_secret_is_tried_at_one_authorization_server_at_a_time() {
    for accepts in [true, false] {
        let mut world = World::with_secret();
        let mut first = world.begin(refused(SERVER));
        let answer = world.until_token(&mut first);
        world.document(PRM)["authorization_servers"] = json!([OTHER]);
        let mut second = world.begin(refused(SECOND));
        for _ in 0..2 {
            let LoginStep::Send(request) = block_on(second.next()).unwrap() else {
                panic!("only requests were expected");
            };
            let answer = world.answer(request);
            second.answer(answer, world.now);
        }
        assert!(second.next().now_or_never().is_none());
        match accepts {
            true => first.answer(answer, world.now),
            false => first.answer(LoginAnswer::Failed("unreachable".into()), world.now),
        }
        let done = block_on(first.next());
        assert_eq!(done.is_ok(), accepts);
        drop(first);
        match block_on(second.next()) {
            Ok(LoginStep::Send(request)) => assert!(!accepts && request.url.starts_with(OTHER)),
            Err(why) => assert!(accepts && why.stage == LoginStage::Registration, "{why}"),
            step => panic!("{step:?}"),
        }
    }
}

/// R-AUC-13: a refresh that is refused is no acceptance, and nobody waits while the user decides about the login that
/// follows.
#[test]
fn a_first_use_ends_with_a_refresh_that_is_refused() {
    let mut world = World::with_secret();
    // With `issuer`, there is no pin.
    world.options.issuer = Some(ISSUER.into());
    let held = world.log_in().unwrap();
    world.options.issuer = None;
    world.options.grant = Grant::AuthorizationCode;
    world.document(PRM)["authorization_servers"] = json!([OTHER]);
    world.now += 3600;
    world.tokens.push_back(error("invalid_grant"));
    let mut login = world.begin(Occasion {
        held: Some(held),
        is_refreshed: false,
        ..refused(SERVER)
    });
    let pin = "client own";
    loop {
        let answer = match block_on(login.next()).unwrap() {
            LoginStep::Send(request) => world.answer(request),
            LoginStep::RedirectUri(_) => LoginAnswer::RedirectUri(world.redirect_uri.clone()),
            LoginStep::Authorize(page) => {
                assert_eq!(world.forms().len(), 2, "{:?}", world.log);
                let lock = world.store.lock(pin).now_or_never();
                assert!(lock.is_some_and(|lock| lock.is_ok()));
                LoginAnswer::Callback(format!("code=secret-code&state={}", page.state))
            }
            LoginStep::Done(credentials) => {
                assert_eq!(credentials.issuer(), OTHER);
                break;
            }
            step => panic!("{step:?}"),
        };
        login.answer(answer, world.now);
    }
    let kept = block_on(world.store.load(pin)).unwrap().unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["issuer"], OTHER);
}

/// A secret on its first use: the user of another device may take minutes, and nobody waits for that.
#[test]
fn a_device_code_is_acceptance() {
    let mut world = World::with_secret();
    world.options.grant = Grant::DeviceCode;
    world.tokens.push_back(error("access_denied"));
    world.log_in().unwrap_err();
    world.document(PRM)["authorization_servers"] = json!([OTHER]);
    assert_eq!(world.log_in().unwrap_err().stage, LoginStage::Registration);
}

/// A store whose documents are saved once it is open.
#[derive(Default)]
struct Slow {
    inner: MemoryStore,
    is_open: AtomicBool,
    waiting: Mutex<Vec<String>>,
}

impl CredentialStore for Slow {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<String>> {
        self.inner.load(key)
    }

    fn save<'a>(&'a self, key: &'a str, document: &'a str) -> Stored<'a, ()> {
        Box::pin(async move {
            self.waiting.lock().unwrap().push(key.to_owned());
            futures::future::poll_fn(|_| match self.is_open.load(Ordering::SeqCst) {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            })
            .await;
            self.inner.save(key, document).await
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        self.inner.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, KeyLock> {
        self.inner.lock(key)
    }
}

/// A store that cannot remove documents whose keys begin so.
struct Failing(Arc<MemoryStore>, &'static str);

impl CredentialStore for Failing {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<String>> {
        self.0.load(key)
    }

    fn save<'a>(&'a self, key: &'a str, document: &'a str) -> Stored<'a, ()> {
        self.0.save(key, document)
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        match key.starts_with(self.1) {
            true => Box::pin(async { Err(io::Error::other("read-only")) }),
            false => self.0.remove(key),
        }
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, KeyLock> {
        self.0.lock(key)
    }
}

/// Tokens leave the store to be revoked, or are found by a second logout.
#[test]
fn a_logout_that_fails_loses_no_tokens() {
    for keys in ["server ", "tokens "] {
        let mut world = World::new();
        world.log_in().unwrap();
        let store = Failing(world.store.clone(), keys);
        let why = block_on(ServerCredentials::forget(&store, SERVER)).unwrap_err();
        assert_eq!(why.to_string(), "read-only", "{keys}");
        let held = block_on(ServerCredentials::forget(&*world.store, SERVER)).unwrap();
        let token = held.and_then(|held| held.tokens().refresh_token.clone());
        assert_eq!(token.as_deref(), Some("secret-refresh"), "{keys}");
        assert_eq!(world.kept(SERVER), None, "{keys}");
    }
}

/// R-AUC-17: from the answer that has tokens until the store has them, a login says that it must not be dropped.
#[test]
fn a_login_says_when_it_holds_what_is_not_kept() {
    let mut world = World::new();
    let store = Arc::new(Slow::default());
    let login = |world: &mut World, occasion| {
        store.is_open.store(false, Ordering::SeqCst);
        store.waiting.lock().unwrap().clear();
        let options = Arc::new(world.options.clone());
        let mut login = Login::new(options, store.clone(), world.guard, occasion, world.now);
        loop {
            // A future that is dropped loses nothing.
            let step = match login.next().now_or_never() {
                Some(step) => step.unwrap(),
                None if login.next().now_or_never().is_none() => {
                    assert!(login.is_keeping());
                    store.is_open.store(true, Ordering::SeqCst);
                    block_on(login.next()).unwrap()
                }
                None => panic!("it went on by itself"),
            };
            assert!(!login.is_keeping(), "{step:?}");
            let answer = match step {
                LoginStep::Send(request) => world.answer(request),
                LoginStep::RedirectUri(_) => LoginAnswer::RedirectUri(world.redirect_uri.clone()),
                LoginStep::Authorize(page) => {
                    store.is_open.store(false, Ordering::SeqCst);
                    LoginAnswer::Callback(format!("code=secret-code&state={}", page.state))
                }
                LoginStep::Done(credentials) => {
                    let waiting = store.waiting.lock().unwrap();
                    let kinds = waiting.iter().filter_map(|key| key.split(' ').next());
                    return (*credentials, kinds.map(str::to_owned).collect::<Vec<_>>());
                }
                step => panic!("{step:?}"),
            };
            login.answer(answer, world.now);
        }
    };
    let (held, kept) = login(&mut world, refused(SERVER));
    assert_eq!(kept, ["registration", "tokens", "server"]);
    world.now += 3600;
    let (fresh, kept) = login(&mut world, Occasion::new(SERVER, Some(held)));
    assert_eq!(kept, ["tokens"]);
    let loaded = block_on(ServerCredentials::load(&*store, SERVER)).unwrap();
    assert_eq!(loaded.unwrap().tokens(), fresh.tokens());
}
