//! What a login asks, in which order, and with what.

use futures::executor::block_on;
use mcpbolt_oauth::challenge::Challenge;
use mcpbolt_oauth::client::{Grant, IdentityProvider, LoginStage, Occasion, ServerCredentials};
use mcpbolt_oauth::jwk::sha256_base64url;
use serde_json::json;

use crate::world::{AS, ISSUER, PRM, SERVER, World, error, get, metadata, tokens};

/// R-AUC-03, R-AUC-07, R-AUC-08, R-AUC-12, R-AUC-13
#[test]
fn a_user_logs_in_with_a_browser() {
    let mut world = World::new();
    let credentials = world.log_in().unwrap();
    let places: Vec<_> = world.requests.iter().map(|it| &*it.url).collect();
    let of_server = |path: &str| format!("{ISSUER}{path}");
    assert_eq!(
        places,
        [PRM, AS, &of_server("/register"), &of_server("/token")]
    );
    let registered: serde_json::Value = serde_json::from_str(&world.requests[2].body).unwrap();
    assert_eq!(registered["application_type"], "native");
    assert_eq!(
        registered["grant_types"],
        json!(["authorization_code", "refresh_token"])
    );
    assert_eq!(registered["token_endpoint_auth_method"], "none");
    assert_eq!(
        registered["redirect_uris"],
        json!(["http://127.0.0.1:4000/callback"])
    );
    let form = &world.forms()[0];
    let verifier = get(form, "code_verifier").unwrap();
    assert!(verifier.len() >= 43);
    assert_eq!(
        world.page("code_challenge"),
        Some(sha256_base64url(verifier.as_bytes()))
    );
    assert_eq!(world.page("code_challenge_method").as_deref(), Some("S256"));
    for (name, value) in [("client_id", "dynamic"), ("resource", SERVER)] {
        assert_eq!(world.page(name).as_deref(), Some(value));
        assert_eq!(get(form, name).as_deref(), Some(value));
    }
    assert_eq!(world.page("scope"), None);
    assert_eq!(get(form, "code").as_deref(), Some("secret-code"));
    assert_eq!(get(form, "redirect_uri"), world.page("redirect_uri"));
    assert_eq!(credentials.tokens().expires_at, Some(world.now + 3600));
    assert_eq!(
        (credentials.issuer(), credentials.resource()),
        (ISSUER, SERVER)
    );
    let headers = credentials
        .headers("POST", SERVER, None, world.now)
        .unwrap();
    assert_eq!(
        headers,
        [("authorization", "Bearer secret-access".to_owned())]
    );
    // Another start of the program needs no discovery; another server's tokens are others.
    let stored = block_on(ServerCredentials::load(&*world.store, SERVER))
        .unwrap()
        .unwrap();
    assert_eq!(stored.tokens(), credentials.tokens());
    let other = block_on(ServerCredentials::load(
        &*world.store,
        "https://mcp.example/other",
    ));
    assert!(other.unwrap().is_none());
    // A second login uses the registration again, if the browser can come back to the same place.
    let before = world.requests.len();
    world.log_in().unwrap();
    assert_eq!(
        world.known.as_deref(),
        Some("http://127.0.0.1:4000/callback")
    );
    assert_eq!(world.requests.len(), before + 3);
    world.redirect_uri = "http://127.0.0.1:4001/callback".into();
    world.log_in().unwrap();
    assert_eq!(world.requests.len(), before + 7);
    block_on(ServerCredentials::forget(&*world.store, SERVER))
        .unwrap()
        .unwrap();
    assert!(
        block_on(ServerCredentials::load(&*world.store, SERVER))
            .unwrap()
            .is_none()
    );
}

/// R-AUC-08: as the server wrote it, which a parser of URLs would change.
#[test]
fn the_resource_is_sent_byte_for_byte() {
    for resource in [
        "https://mcp.example",
        "https://MCP.example/mcp",
        "https://mcp.example:443/",
    ] {
        let mut world = World::new();
        world.document(PRM)["resource"] = resource.into();
        world.log_in().unwrap();
        assert_eq!(world.page("resource").as_deref(), Some(resource));
        assert_eq!(
            get(&world.forms()[0], "resource").as_deref(),
            Some(resource)
        );
    }
}

/// R-AUC-04, R-AUC-05
#[test]
fn metadata_is_looked_for_in_the_order_of_the_specification() {
    let root = "https://mcp.example/.well-known/oauth-protected-resource";
    let prm = |issuer: &str| json!({"resource": "https://mcp.example/", "authorization_servers": [issuer]});
    let issuer = "https://as.example/tenant";
    let places = [
        "https://as.example/.well-known/oauth-authorization-server/tenant",
        "https://as.example/.well-known/openid-configuration/tenant",
        "https://as.example/tenant/.well-known/openid-configuration",
    ];
    for (at, place) in places.iter().enumerate() {
        let mut world = World::new();
        world.documents = vec![
            (root.into(), prm(issuer)),
            ((*place).to_owned(), metadata(issuer)),
        ];
        world.callback = Some(|state| format!("code=c&state={state}"));
        world.challenged("Bearer").unwrap();
        let expected: Vec<_> = [PRM, root].iter().chain(&places[..=at]).copied().collect();
        assert_eq!(world.gets(), expected);
    }
    let bare = "https://as.example/.well-known/openid-configuration";
    let mut world = World::new();
    world.documents[1].0 = bare.into();
    world.challenged("Bearer").unwrap();
    assert_eq!(world.gets(), [PRM, AS, bare]);
    // Where the challenge names the place, there is no other.
    let mut world = World::new();
    world.documents[0].0 = root.into();
    let error = world.log_in().unwrap_err();
    assert_eq!(
        (error.stage, world.gets()),
        (LoginStage::Resource, vec![PRM])
    );
}

/// R-AUC-02: metadata at the origin, and else default paths.
#[test]
fn a_server_of_the_first_revision_is_its_own_authorization_server() {
    let root = "https://mcp.example/.well-known/oauth-authorization-server";
    for has_metadata in [true, false] {
        let mut world = World::new();
        world.documents.clear();
        if has_metadata {
            world
                .documents
                .push((root.into(), metadata("https://mcp.example")));
        }
        world.callback = Some(|state| format!("code=c&state={state}"));
        world.challenged("Bearer").unwrap();
        assert_eq!(world.gets().last(), Some(&root));
        let get = &world.requests[0];
        assert!(
            get.headers
                .iter()
                .any(|(name, _)| *name == "mcp-protocol-version")
        );
        let page = world.pages[0].as_str();
        assert!(page.starts_with("https://mcp.example/authorize?"), "{page}");
        assert_eq!(world.page("resource").as_deref(), Some(SERVER));
    }
}

/// R-AUC-15, R-AUC-17: challenge, else metadata, else none; `offline_access` where it is listed.
#[test]
fn scopes_are_those_that_the_server_names() {
    let table: [(&str, &[&str], &[&str], &[&str], Option<&str>); 8] = [
        ("", &[], &[], &[], None),
        (r#", scope="a b""#, &["c"], &[], &[], Some("a b")),
        ("", &["c", "d"], &[], &[], Some("c d")),
        ("", &["c", "c d", "\"", ""], &[], &[], Some("c")),
        (
            "",
            &["c"],
            &["x", "offline_access"],
            &[],
            Some("c offline_access"),
        ),
        ("", &[], &["offline_access"], &[], None),
        ("", &["c"], &["x"], &["own", "c"], Some("c own")),
        (
            r#", scope="a""#,
            &[],
            &["offline_access"],
            &["own"],
            Some("a own offline_access"),
        ),
    ];
    for (challenge, resource, server, own, expected) in table {
        let mut world = World::new();
        world.document(PRM)["scopes_supported"] = json!(resource);
        world.document(AS)["scopes_supported"] = json!(server);
        world.options.scopes = own.iter().map(|&scope| scope.into()).collect();
        let challenge = format!(r#"Bearer resource_metadata="{PRM}"{challenge}"#);
        let credentials = world.challenged(&challenge).unwrap();
        assert_eq!(world.page("scope").as_deref(), expected, "{challenge}");
        assert_eq!(credentials.tokens().scope.as_deref(), expected);
        let consents = expected.is_some_and(|scope| scope.contains("offline"));
        assert_eq!(world.page("prompt").is_some(), consents);
    }
}

/// R-AUC-16: the union, and not the same again.
#[test]
fn more_scopes_are_asked_for_once() {
    let mut world = World::new();
    let first = format!(r#"Bearer resource_metadata="{PRM}", scope="read""#);
    let held = world.challenged(&first).unwrap();
    let step_up = |scope: &str, held: &ServerCredentials| Occasion {
        status: 403,
        challenges: Challenge::parse_all([format!(
            r#"Bearer error="insufficient_scope", scope="{scope}", resource_metadata="{PRM}""#
        )
        .as_bytes()]),
        ..Occasion::new(SERVER, Some(held.clone()))
    };
    let more = world.run(step_up("write", &held)).unwrap();
    assert_eq!(world.page("scope").as_deref(), Some("read write"));
    let pages = world.pages.len();
    for scope in ["write", "read write", ""] {
        let error = world.run(step_up(scope, &more)).unwrap_err();
        assert_eq!(error.stage, LoginStage::StepUp, "{error}");
    }
    assert_eq!(world.pages.len(), pages);
    world.run(step_up("admin", &more)).unwrap();
    assert_eq!(world.page("scope").as_deref(), Some("read write admin"));
    // A later process does not know what was asked for, and may ask again.
    let stored = block_on(ServerCredentials::load(&*world.store, SERVER))
        .unwrap()
        .unwrap();
    world.run(step_up("admin", &stored)).unwrap();
}

/// R-AUC-10, R-AUC-11
#[test]
fn the_client_is_the_one_that_comes_first() {
    let document = "https://client.example/metadata.json";
    let cases: [(&str, Option<&str>, bool, bool, Result<&str, &str>); 6] = [
        ("by hand", Some("own"), true, true, Ok("own")),
        ("by document", None, true, true, Ok(document)),
        ("dynamic", None, false, true, Ok("dynamic")),
        ("by hand alone", Some("own"), false, false, Ok("own")),
        (
            "none",
            None,
            false,
            false,
            Err("register this one there by hand"),
        ),
        ("document alone", None, true, false, Ok(document)),
    ];
    for (name, client_id, documents, dynamic, expected) in cases {
        let mut world = World::new();
        world.options.client_id = client_id.map(Into::into);
        world.options.client_metadata_url = Some(document.into());
        world.document(AS)["client_id_metadata_document_supported"] = documents.into();
        if !dynamic {
            world.document(AS)["registration_endpoint"] = json!(null);
        }
        match (world.log_in(), expected) {
            (Ok(credentials), Ok(id)) => assert_eq!(credentials.client_id(), id, "{name}"),
            (Err(error), Err(why)) => assert!(error.to_string().contains(why), "{name}: {error}"),
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
    }
    for bad in [
        "http://client.example/metadata.json",
        "https://client.example/",
        "x",
    ] {
        let mut world = World::new();
        world.options.client_metadata_url = Some(bad.into());
        world.document(AS)["client_id_metadata_document_supported"] = true.into();
        let error = world.log_in().unwrap_err();
        assert_eq!(error.stage, LoginStage::Options, "{bad}");
    }
}

#[test]
fn a_client_authenticates_itself_as_the_server_takes_it() {
    // The method in the registration counts, else what the server's metadata lists.
    let table = [
        (json!(["client_secret_basic"]), json!(null), "basic"),
        (json!(["client_secret_post"]), json!(null), "post"),
        (json!(["none"]), json!(null), "none"),
        (json!(null), json!(null), "basic"),
        (
            json!(["client_secret_basic"]),
            json!("client_secret_post"),
            "post",
        ),
        (json!(["other"]), json!(null), "none"),
    ];
    for (supported, registered, expected) in table {
        let mut world = World::new();
        world.document(AS)["token_endpoint_auth_methods_supported"] = supported.clone();
        world.registration = json!({
            "client_id": "a:b c", "client_secret": "secret-client%",
            "token_endpoint_auth_method": registered,
        });
        world.log_in().unwrap();
        let sent = world.requests.last().unwrap();
        let header = sent
            .headers
            .iter()
            .find(|(name, _)| *name == "authorization");
        let form = &world.forms()[0];
        let found = match (header, get(form, "client_secret")) {
            (Some((_, value)), None) => {
                // RFC 6749, section 2.3.1: encoded, then joined by a colon.
                use base64::Engine as _;
                let encoded = value.strip_prefix("Basic ").unwrap();
                let both = base64::engine::general_purpose::STANDARD
                    .decode(encoded)
                    .unwrap();
                assert_eq!(both, b"a%3Ab+c:secret-client%25");
                assert_eq!(get(form, "client_id"), None);
                "basic"
            }
            (None, Some(secret)) => {
                assert_eq!(secret, "secret-client%");
                "post"
            }
            _ => "none",
        };
        assert_eq!(found, expected, "{supported} {registered}");
    }
}

/// R-AUC-17
#[test]
fn tokens_are_refreshed_and_a_login_follows_when_that_is_refused() {
    let mut world = World::new();
    let held = world.log_in().unwrap();
    world.now += 3600;
    let ended = || Occasion::new(SERVER, Some(held.clone()));
    let refreshed = |world: &mut World| {
        let (_, _, mut body) = tokens();
        body["access_token"] = "secret-access-2".into();
        world.tokens.push_back((200, Vec::new(), body));
    };
    // A server that is away costs no login.
    world.tokens.push_back((503, Vec::new(), json!(null)));
    let error_ = world.run(ended()).unwrap_err();
    assert_eq!(
        (error_.stage, error_.is_login_needed()),
        (LoginStage::Refresh, false)
    );
    refreshed(&mut world);
    let fresh = world.run(ended()).unwrap();
    let form = world.forms().pop().unwrap();
    assert_eq!(get(&form, "grant_type").as_deref(), Some("refresh_token"));
    assert_eq!(
        get(&form, "refresh_token").as_deref(),
        Some("secret-refresh")
    );
    assert_eq!(get(&form, "resource").as_deref(), Some(SERVER));
    assert!(fresh.is_refreshed() && !held.is_refreshed());
    // Another process has done it: nothing is asked.
    let before = world.requests.len();
    let taken = world.run(ended()).unwrap();
    assert_eq!(taken.tokens().access_token, "secret-access-2");
    assert_eq!(world.requests.len(), before);
    // Refused: a login, if the MCP server has asked for one.
    let held = taken;
    world.now += 3600;
    world.tokens.push_back(error("invalid_grant"));
    let error_ = world
        .run(Occasion::new(SERVER, Some(held.clone())))
        .unwrap_err();
    assert!(error_.is_login_needed(), "{error_}");
    let occasion = Occasion {
        status: 401,
        challenges: Challenge::parse_all([&b"Bearer"[..]]),
        ..Occasion::new(SERVER, Some(held))
    };
    assert_eq!(world.pages.len(), 1);
    world.run(occasion).unwrap();
    assert_eq!(world.pages.len(), 2);
}

/// R-AUC-13: a new authorization server gets nothing of the last one's.
#[test]
fn another_issuer_means_another_registration() {
    let mut world = World::new();
    world.registration = json!({"client_id": "first", "client_secret": "secret-client"});
    let held = world.log_in().unwrap();
    let other = "https://other.example";
    world.document(PRM)["authorization_servers"] = json!([other]);
    let place = format!("{other}/.well-known/oauth-authorization-server");
    world.documents.push((place, metadata(other)));
    world.registration = json!({"client_id": "second"});
    world.callback = Some(|state| format!("code=c&state={state}"));
    let before = world.requests.len();
    let occasion = Occasion {
        status: 401,
        is_refreshed: true,
        challenges: Challenge::parse_all([&b"Bearer"[..]]),
        ..Occasion::new(SERVER, Some(held))
    };
    let fresh = world.run(occasion).unwrap();
    assert_eq!((fresh.issuer(), fresh.client_id()), (other, "second"));
    for request in &world.requests[before..] {
        let sent = format!("{} {} {:?}", request.url, request.body, request.headers);
        assert!(
            !sent.contains("first") && !sent.contains("secret"),
            "{sent}"
        );
    }
    // A client that was registered by hand is for one issuer, too.
    world.options.client_id = Some("own".into());
    world.options.issuer = Some(ISSUER.into());
    let error = world.log_in().unwrap_err();
    assert_eq!(error.stage, LoginStage::Registration, "{error}");
}

#[test]
fn a_user_logs_in_on_another_device() {
    let mut world = World::new();
    world.options.grant = Grant::DeviceCode;
    for code in [
        "authorization_pending",
        "slow_down",
        "authorization_pending",
    ] {
        world.tokens.push_back(error(code));
    }
    world.log_in().unwrap();
    assert!(world.log.contains(&"show ABCD-EFGH".to_owned()));
    assert_eq!(world.waited, 10 + 10 + 15 + 15);
    assert!(world.pages.is_empty());
    for (code, expected) in [
        ("access_denied", "access_denied"),
        ("expired_token", "expired"),
    ] {
        world.tokens.push_back(error(code));
        let error = world.log_in().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    world.tokens = std::iter::repeat_with(|| error("authorization_pending"))
        .take(99)
        .collect();
    let error = world.log_in().unwrap_err();
    assert!(error.to_string().contains("not entered in time"), "{error}");
}

/// R-AUE-01, R-AUE-02
#[test]
fn programs_and_enterprises_log_in_without_a_browser() {
    let mut world = World::new();
    world.options.client_id = Some("own".into());
    world.options.client_secret = Some("secret-client".into());
    world.options.grant = Grant::ClientCredentials;
    world.log_in().unwrap();
    let form = world.forms().pop().unwrap();
    assert_eq!(
        get(&form, "grant_type").as_deref(),
        Some("client_credentials")
    );
    assert_eq!(get(&form, "resource").as_deref(), Some(SERVER));
    world.options.grant = Grant::WorkloadJwt;
    world.log_in().unwrap();
    let form = world.forms().pop().unwrap();
    assert_eq!(get(&form, "assertion").as_deref(), Some("secret-assertion"));
    // No other way is tried.
    let before = world.forms().len();
    world.tokens.push_back(error("invalid_grant"));
    assert!(world.log_in().unwrap_err().is("invalid_grant"));
    assert_eq!(world.forms().len(), before + 1);

    world.options.grant = Grant::EnterpriseManaged(IdentityProvider {
        token_endpoint: "https://idp.example/token".into(),
        client_id: "at-idp".into(),
        client_secret: None,
    });
    let jag = "urn:ietf:params:oauth:token-type:id-jag";
    let exchanged =
        json!({"access_token": "the-grant", "issued_token_type": jag, "token_type": "N_A"});
    world.tokens.push_back((200, Vec::new(), exchanged));
    world.log_in().unwrap();
    let forms = world.forms();
    let [.., exchange, grant] = &*forms else {
        panic!()
    };
    for (name, value) in [
        ("requested_token_type", jag),
        ("audience", ISSUER),
        ("resource", SERVER),
        ("subject_token", "secret-assertion"),
        (
            "subject_token_type",
            "urn:ietf:params:oauth:token-type:id_token",
        ),
        ("client_id", "at-idp"),
    ] {
        assert_eq!(get(exchange, name).as_deref(), Some(value), "{name}");
    }
    let bearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    assert_eq!(get(grant, "grant_type").as_deref(), Some(bearer));
    assert_eq!(get(grant, "assertion").as_deref(), Some("the-grant"));
    // Anything else than such a grant is not passed on.
    let before = world.forms().len();
    let other = json!({"access_token": "a token", "token_type": "Bearer"});
    world.tokens.push_back((200, Vec::new(), other));
    assert!(world.log_in().is_err());
    assert_eq!(world.forms().len(), before + 1);
    // None of these registers itself.
    world.options.client_id = None;
    assert_eq!(world.log_in().unwrap_err().stage, LoginStage::Options);
}

#[test]
fn a_registration_that_the_server_forgot_is_replaced() {
    let mut world = World::new();
    world.log_in().unwrap();
    // At the token endpoint: this login fails, the next one registers.
    world.tokens.push_back(error("invalid_client"));
    assert!(world.log_in().unwrap_err().is("invalid_client"));
    world.registration = json!({"client_id": "second"});
    let held = world.log_in().unwrap();
    assert_eq!(held.client_id(), "second");
    // At a refresh: the login that follows registers.
    world.now += 3600;
    world.tokens.push_back(error("invalid_client"));
    world.registration = json!({"client_id": "third"});
    let occasion = Occasion {
        status: 401,
        challenges: Challenge::parse_all([&b"Bearer"[..]]),
        ..Occasion::new(SERVER, Some(held))
    };
    assert_eq!(world.run(occasion).unwrap().client_id(), "third");
    // A client that the program was given is no registration: what is stored stays.
    world.options.client_id = Some("own".into());
    world.tokens.push_back(error("invalid_client"));
    assert!(world.log_in().unwrap_err().is("invalid_client"));
    world.options.client_id = None;
    world.registration = json!({"client_id": "fourth"});
    assert_eq!(world.log_in().unwrap().client_id(), "third");
}
