//! Logins that end, change, and are shared: what is kept of them, and for whom.

use std::sync::Arc;

use futures::executor::block_on;
use mcpbolt_oauth::challenge::Challenge;
use mcpbolt_oauth::client::{
    Grant, Login, LoginAnswer, LoginOptions, LoginStage, LoginStep, Occasion, ServerCredentials,
    UrlGuard, Zone,
};
use mcpbolt_oauth::store::CredentialStore;
use serde_json::{Value, json};

use crate::world::{AS, ISSUER, PRM, SERVER, World, get, tokens};

fn refused(held: Option<&ServerCredentials>) -> Occasion {
    Occasion {
        status: 401,
        challenges: Challenge::parse_all([&b"Bearer"[..]]),
        ..Occasion::new(SERVER, held.cloned())
    }
}

/// An answer of the token endpoint with another access token, and some members replaced.
fn granted(token: &str, members: &[(&str, Value)]) -> (u16, Vec<(&'static str, String)>, Value) {
    let (status, headers, mut body) = tokens();
    body["access_token"] = token.into();
    for (name, value) in members {
        body[name] = value.clone();
    }
    (status, headers, body)
}

/// The documents of the world's store.
fn stored(world: &World, key: &str) -> Option<String> {
    block_on(world.store.load(key)).unwrap()
}

/// R-AUC-02: an outage is no sign of an old server.
#[test]
fn a_server_that_is_overloaded_is_not_taken_for_an_old_one() {
    let root = "https://mcp.example/.well-known/oauth-protected-resource";
    let own = "https://mcp.example/.well-known/oauth-authorization-server";
    for status in [408, 429, 500, 502, 503, 504] {
        for (place, stage) in [
            (PRM, LoginStage::Resource),
            (root, LoginStage::Resource),
            (own, LoginStage::Discovery),
        ] {
            let mut world = World::new();
            world.documents = vec![(place.into(), json!(status))];
            let error = world.challenged("Bearer").unwrap_err();
            assert_eq!(error.stage, stage, "{error}");
            assert!(error.to_string().contains(&status.to_string()), "{error}");
            assert!(world.pages.is_empty());
        }
        let mut world = World::new();
        *world.document(AS) = json!(status);
        assert_eq!(world.log_in().unwrap_err().stage, LoginStage::Discovery);
    }
    for status in [400, 401, 403, 404, 405, 406, 410] {
        let mut world = World::new();
        world.documents = [PRM, root, own]
            .map(|place| (place.to_owned(), json!(status)))
            .into();
        world.callback = Some(|state| format!("code=c&state={state}"));
        world.challenged("Bearer").unwrap();
    }
}

#[test]
fn a_secret_that_was_replaced_is_used() {
    let mut world = World::new();
    world.document(AS)["revocation_endpoint"] = json!("https://as.example/revoke");
    world.document(AS)["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    world.options.client_id = Some("own".into());
    world.options.client_secret = Some("secret-client".into());
    let held = world.log_in().unwrap();
    world.options.client_secret = Some("secret-client-2".into());
    let secret = |world: &World| get(&world.forms().pop().unwrap(), "client_secret");
    world.now += 3600;
    let fresh = world
        .run(Occasion::new(SERVER, Some(held.clone())))
        .unwrap();
    assert_eq!(secret(&world).as_deref(), Some("secret-client-2"));
    // A program that knows of no client uses what is kept; so does one for another authorization server.
    for issuer in [None, Some("https://other.example".to_owned())] {
        world.options.client_id = issuer.is_some().then(|| "own".into());
        world.options.issuer = issuer;
        world.now += 3600;
        world
            .run(Occasion::new(SERVER, Some(fresh.clone())))
            .unwrap();
        assert_eq!(secret(&world).as_deref(), Some("secret-client"));
    }
}

/// R-AUC-12
#[test]
fn a_client_is_registered_for_its_grant() {
    let mut world = World::new();
    let registered = |world: &World| {
        let all = world
            .requests
            .iter()
            .filter(|it| it.url.ends_with("/register"));
        all.map(|it| serde_json::from_str::<Value>(&it.body).unwrap()["grant_types"][0].clone())
            .collect::<Vec<_>>()
    };
    let (browser, device) = (
        "authorization_code",
        "urn:ietf:params:oauth:grant-type:device_code",
    );
    world.log_in().unwrap();
    world.options.grant = Grant::DeviceCode;
    world.log_in().unwrap();
    world.log_in().unwrap();
    assert_eq!(registered(&world), [browser, device]);
    world.options.grant = Grant::AuthorizationCode;
    world.log_in().unwrap();
    assert_eq!(registered(&world), [browser, device, browser]);
    // A document of an earlier release does not say.
    let key = format!("registration {ISSUER}");
    let mut document: Value = serde_json::from_str(&stored(&world, &key).unwrap()).unwrap();
    document.as_object_mut().unwrap().remove("grant").unwrap();
    block_on(world.store.save(&key, &document.to_string())).unwrap();
    world.log_in().unwrap();
    assert_eq!(registered(&world).len(), 3);
    // Programs without a user do not take the user's registration.
    world.options.grant = Grant::ClientCredentials;
    assert_eq!(world.log_in().unwrap_err().stage, LoginStage::Options);
}

#[test]
fn nothing_is_left_of_an_earlier_login() {
    let mut world = World::new();
    let key = |client: &str| format!("tokens {ISSUER} {client} {SERVER} {SERVER}");
    world.log_in().unwrap();
    world.options.client_id = Some("own".into());
    world.log_in().unwrap();
    assert_eq!(stored(&world, &key("dynamic")), None);
    assert!(stored(&world, &key("own")).is_some());
    // Damaged tokens are reported, and go with the next login or logout.
    for is_login in [true, false] {
        block_on(world.store.save(&key("own"), "damaged")).unwrap();
        assert!(block_on(ServerCredentials::load(&*world.store, SERVER)).is_err());
        if is_login {
            block_on(ServerCredentials::forget(&*world.store, SERVER)).unwrap();
            world.log_in().unwrap();
            assert!(block_on(ServerCredentials::load(&*world.store, SERVER)).is_ok());
        } else {
            block_on(ServerCredentials::forget(&*world.store, SERVER)).unwrap();
            assert_eq!(stored(&world, &key("own")), None);
        }
    }
}

#[test]
fn tokens_stay_bound_when_they_are_refreshed() {
    let bound = |token: &str| granted(token, &[("token_type", json!("DPoP"))]);
    let mut world = World::new();
    world.options.dpop = Some(true);
    world.tokens.push_back(bound("secret-access"));
    let held = world.log_in().unwrap();
    for kind in ["Bearer", "mac", ""] {
        let mut world = World {
            store: world.store.clone(),
            options: world.options.clone(),
            now: world.now + 3600,
            ..World::new()
        };
        let next = format!("next after {kind:?}");
        let members = [("token_type", json!(kind)), ("refresh_token", json!(next))];
        world.tokens.push_back(granted("x", &members));
        let occasion = Occasion::new(SERVER, Some(held.clone()));
        assert_eq!(world.run(occasion).unwrap_err().stage, LoginStage::Refresh);
        // The refresh token is used up all the same: the new one is kept, and the access token is not used.
        let kept = block_on(ServerCredentials::load(&*world.store, SERVER)).unwrap();
        let kept = kept.unwrap();
        assert_eq!(kept.tokens().refresh_token.as_deref(), Some(&*next));
        assert!(kept.tokens().wants_refresh(world.now));
        assert!(held.tokens().dpop_key.is_some());
        assert_eq!(kept.tokens().dpop_key, held.tokens().dpop_key);
    }
    // The next one may do better.
    world.now += 3600;
    world.tokens.push_back(bound("secret-access-1"));
    let held = world.run(Occasion::new(SERVER, Some(held))).unwrap();
    assert_eq!(held.tokens().access_token, "secret-access-1");
    // Where the program does not insist, the token is sent as what it is.
    world.options.dpop = None;
    world.now += 3600;
    world.tokens.push_back(granted("secret-access-2", &[]));
    let fresh = world.run(Occasion::new(SERVER, Some(held))).unwrap();
    let headers = fresh.headers("POST", SERVER, None, world.now).unwrap();
    assert_eq!(
        headers,
        [("authorization", "Bearer secret-access-2".to_owned())]
    );
    // A token that is bound to no key of ours is of no use.
    world.now += 3600;
    world.tokens.push_back(bound("secret-access-3"));
    let error = world
        .run(Occasion::new(SERVER, Some(fresh.clone())))
        .unwrap_err();
    assert_eq!(error.stage, LoginStage::Refresh);
    // A program that insists gets a key by a login alone.
    world.options.dpop = Some(true);
    let forms = world.forms().len();
    let error = world
        .run(Occasion::new(SERVER, Some(fresh.clone())))
        .unwrap_err();
    assert!(
        error.is_login_needed() && world.forms().len() == forms,
        "{error}"
    );
    world.tokens.push_back(bound("secret-access-4"));
    let fresh = world.run(refused(Some(&fresh))).unwrap();
    assert!(!fresh.is_refreshed() && fresh.tokens().dpop_key.is_some());
}

/// A page of a proxy on the way, or of a server that is being moved, is no word of the authorization server.
#[test]
fn a_refusal_of_a_refresh_is_an_error_code_of_the_server() {
    let code = |code: &str| json!({"error": code, "error_description": "said"});
    for (status, body, refuses, told) in [
        (400, code("invalid_grant"), true, ""),
        // Some servers have a status of their own for it.
        (403, code("invalid_grant"), true, ""),
        (401, code("invalid_client"), true, ""),
        (400, code("invalid_request"), true, ""),
        (401, code("of_its_own"), true, ""),
        (400, code("server_error"), false, "server_error: said; try"),
        (
            401,
            code("temporarily_unavailable"),
            false,
            "temporarily_unavailable: said; try",
        ),
        (404, code("not_found"), false, "not_found: said; ask"),
        (302, json!(null), false, "status 302; ask its operator, or"),
        (403, json!("<html>"), false, "status 403; ask"),
        (404, json!({"error": 404}), false, "status 404; ask"),
        (400, json!("<html>"), false, "status 400; ask"),
        (429, json!(null), false, "status 429; try again later"),
    ] {
        // Whether the MCP server has asked for a login.
        for asks in [false, true] {
            let mut world = World::new();
            let held = world.log_in().unwrap();
            world.now += 3600;
            world.tokens.push_back((status, Vec::new(), body.clone()));
            let occasion = match asks {
                true => refused(Some(&held)),
                false => Occasion::new(SERVER, Some(held)),
            };
            let case = format!("{status} {body} {asks}");
            match world.run(occasion) {
                Ok(_) => assert!(refuses && asks, "{case}"),
                Err(why) if refuses => assert!(!asks && why.is_login_needed(), "{case}: {why}"),
                Err(why) => {
                    assert_eq!(why.stage, LoginStage::Refresh, "{case}");
                    assert!(!why.is_login_needed(), "{case}");
                    assert!(why.to_string().contains(told), "{case}: {why}");
                }
            }
            let logins = 1 + usize::from(refuses && asks);
            assert_eq!(world.pages.len(), logins, "{case}");
        }
    }
}

#[test]
fn a_damaged_key_is_reported() {
    let mut world = World::new();
    world.options.dpop = Some(true);
    world
        .tokens
        .push_back(granted("secret-access", &[("token_type", json!("DPoP"))]));
    let held = world.log_in().unwrap();
    let key = format!("tokens {ISSUER} dynamic {SERVER} {SERVER}");
    let mut document: Value = serde_json::from_str(&stored(&world, &key).unwrap()).unwrap();
    document["dpop_key"] = json!("damaged");
    block_on(world.store.save(&key, &document.to_string())).unwrap();
    let error = block_on(ServerCredentials::load(&*world.store, SERVER)).unwrap_err();
    assert!(error.to_string().contains("log out"), "{error}");
    world.now += 3600;
    let forms = world.forms().len();
    let error = world.run(Occasion::new(SERVER, Some(held))).unwrap_err();
    assert_eq!(
        (error.stage, world.forms().len()),
        (LoginStage::Store, forms)
    );
}

/// The login of another process is used before the user is asked.
#[test]
fn a_login_of_another_process_is_taken_over() {
    let mut world = World::new();
    world.log_in().unwrap();
    let mut other = World {
        store: world.store.clone(),
        ..World::new()
    };
    let taken = other.run(refused(None)).unwrap();
    assert!(taken.is_refreshed() && other.requests.is_empty());
    // One that has ended is refreshed.
    other.now += 3600;
    other.tokens.push_back(granted("secret-access-2", &[]));
    let fresh = other.run(refused(None)).unwrap();
    assert_eq!(fresh.tokens().access_token, "secret-access-2");
    assert!(other.pages.is_empty());
    // One that was refused, too, is not.
    let occasion = Occasion {
        is_refreshed: true,
        ..refused(Some(&fresh))
    };
    other.run(occasion).unwrap();
    assert_eq!(other.pages.len(), 1);
    // For more scopes, it has to have them.
    let held = other.log_in_with("read");
    let more = other.log_in_with("read write");
    let mut third = World {
        store: world.store.clone(),
        ..World::new()
    };
    let step_up = |scope: &str| Occasion {
        status: 403,
        challenges: Challenge::parse_all([format!(
            r#"Bearer error="insufficient_scope", scope="{scope}""#
        )
        .as_bytes()]),
        ..Occasion::new(SERVER, Some(held.clone()))
    };
    let taken = third.run(step_up("write")).unwrap();
    assert_eq!(taken.tokens(), more.tokens());
    assert!(third.pages.is_empty());
    third.run(step_up("admin")).unwrap();
    assert_eq!(third.pages.len(), 1);
}

impl World {
    /// Logs in anew, for a scope.
    fn log_in_with(&mut self, scope: &str) -> ServerCredentials {
        block_on(ServerCredentials::forget(&*self.store, SERVER)).unwrap();
        let token = format!("secret-access for {scope}");
        self.tokens.push_back(granted(&token, &[]));
        let challenge = format!(r#"Bearer scope="{scope}""#);
        self.challenged(&challenge).unwrap()
    }
}

/// Several processes that need a login at once ask the user once.
#[test]
fn one_of_several_processes_asks_the_user() {
    let mut world = World::new();
    let begin = |world: &World| {
        let options = Arc::new(LoginOptions::new("Test"));
        let guard = UrlGuard::new(Zone::Public, false);
        Login::new(
            options,
            world.store.clone(),
            guard,
            refused(None),
            1_000_000,
        )
    };
    let (mut first, mut second) = (begin(&world), begin(&world));
    assert!(matches!(
        block_on(first.next()).unwrap(),
        LoginStep::Send(_)
    ));
    // The second waits as long as the first takes.
    let waits = |login: &mut Login| futures::FutureExt::now_or_never(login.next()).is_none();
    assert!(waits(&mut second));
    // The first fails: the second asks.
    first.answer(LoginAnswer::Failed("unreachable".into()), 1_000_000);
    block_on(first.next()).unwrap_err();
    assert!(matches!(
        block_on(second.next()).unwrap(),
        LoginStep::Send(_)
    ));
    drop(second);
    // The first succeeds: the second has what it got.
    let mut second = begin(&world);
    drop(first);
    let held = world.log_in().unwrap();
    let LoginStep::Done(taken) = block_on(second.next()).unwrap() else {
        panic!();
    };
    assert_eq!(taken.tokens(), held.tokens());
}
