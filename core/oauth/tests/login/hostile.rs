//! Servers that want the client to do what it must not.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures::executor::block_on;
use mcpbolt_oauth::client::{DpopKey, LoginStage, Occasion, UrlGuard, Zone};
use mcpbolt_oauth::store::CredentialStore as _;
use mcpbolt_oauth::tokens;
use serde_json::{Value, json};

use crate::world::{AS, ISSUER, PRM, SECRETS, SERVER, World, error};

/// What is changed, and in which stage the login fails.
type Case = (&'static str, fn(&mut World), LoginStage);

fn prm(world: &mut World, name: &str, value: impl Into<Value>) {
    world.document(PRM)[name] = value.into();
}

fn server(world: &mut World, name: &str, value: impl Into<Value>) {
    world.document(AS)[name] = value.into();
}

fn back(world: &mut World, callback: fn(&str) -> String) {
    world.callback = Some(callback);
}

fn granted(world: &mut World, body: Value) {
    world.tokens.push_back((200, Vec::new(), body));
}

/// Those that fail before the user sees anything, and those that fail after.
const METADATA: &[Case] = &[
    // R-AUC-09: the metadata is of another server, to which a token would be sent.
    (
        "resource of another host",
        |w| prm(w, "resource", "https://evil.example/mcp"),
        LoginStage::Resource,
    ),
    (
        "resource of another port",
        |w| prm(w, "resource", "https://mcp.example:8443/mcp"),
        LoginStage::Resource,
    ),
    (
        "resource without TLS",
        |w| prm(w, "resource", "http://mcp.example/mcp"),
        LoginStage::Resource,
    ),
    (
        "resource of another path",
        |w| prm(w, "resource", "https://mcp.example/other"),
        LoginStage::Resource,
    ),
    (
        "resource of a longer path",
        |w| prm(w, "resource", "https://mcp.example/mcp/x"),
        LoginStage::Resource,
    ),
    (
        "resource of a part of a name",
        |w| prm(w, "resource", "https://mcp.example/mc"),
        LoginStage::Resource,
    ),
    (
        "resource with a fragment",
        |w| prm(w, "resource", "https://mcp.example/mcp#x"),
        LoginStage::Resource,
    ),
    (
        "resource that is no URL",
        |w| prm(w, "resource", "mcp"),
        LoginStage::Resource,
    ),
    (
        "resource that is no text",
        |w| prm(w, "resource", 7),
        LoginStage::Resource,
    ),
    (
        "no authorization server",
        |w| prm(w, "authorization_servers", json!([])),
        LoginStage::Resource,
    ),
    (
        "authorization servers that are none",
        |w| prm(w, "authorization_servers", "x"),
        LoginStage::Resource,
    ),
    (
        "a redirect to this machine",
        |w| w.documents[0].1 = "https://127.0.0.1/prm".into(),
        LoginStage::Resource,
    ),
    (
        "a redirect out of TLS",
        |w| w.documents[0].1 = "http://mcp.example/prm".into(),
        LoginStage::Resource,
    ),
    (
        "a redirect in circles",
        |w| w.documents[0].1 = PRM.into(),
        LoginStage::Resource,
    ),
    (
        "an array for the document",
        |w| w.documents[0].1 = json!([1]),
        LoginStage::Resource,
    ),
    // R-AUC-18, R-AUC-19: issuers and endpoints.
    (
        "issuer without TLS",
        |w| prm(w, "authorization_servers", json!(["http://as.example"])),
        LoginStage::Discovery,
    ),
    (
        "issuer in a file",
        |w| prm(w, "authorization_servers", json!(["file:///etc/passwd"])),
        LoginStage::Discovery,
    ),
    (
        "issuer on this machine",
        |w| prm(w, "authorization_servers", json!(["http://localhost:80"])),
        LoginStage::Discovery,
    ),
    (
        "issuer in a private network",
        |w| prm(w, "authorization_servers", json!(["https://10.0.0.1"])),
        LoginStage::Discovery,
    ),
    (
        "issuer of cloud metadata",
        |w| {
            prm(
                w,
                "authorization_servers",
                json!(["https://169.254.169.254"]),
            )
        },
        LoginStage::Discovery,
    ),
    (
        "issuer with a user",
        |w| {
            prm(
                w,
                "authorization_servers",
                json!(["https://as.example@evil.example"]),
            )
        },
        LoginStage::Discovery,
    ),
    // R-AUC-06
    (
        "another issuer",
        |w| server(w, "issuer", "https://evil.example"),
        LoginStage::Discovery,
    ),
    (
        "the issuer with a slash",
        |w| server(w, "issuer", "https://as.example/"),
        LoginStage::Discovery,
    ),
    (
        "the issuer in capitals",
        |w| server(w, "issuer", "https://AS.example"),
        LoginStage::Discovery,
    ),
    (
        "no issuer",
        |w| server(w, "issuer", json!(null)),
        LoginStage::Discovery,
    ),
    (
        "token endpoint without TLS",
        |w| server(w, "token_endpoint", "http://as.example/token"),
        LoginStage::Discovery,
    ),
    (
        "token endpoint on this machine",
        |w| server(w, "token_endpoint", "http://127.0.0.1/token"),
        LoginStage::Discovery,
    ),
    (
        "token endpoint of a link",
        |w| server(w, "token_endpoint", "https://[fe80::1]/token"),
        LoginStage::Discovery,
    ),
    (
        "no token endpoint",
        |w| server(w, "token_endpoint", json!(null)),
        LoginStage::Discovery,
    ),
    (
        "registration in a private network",
        |w| server(w, "registration_endpoint", "https://192.168.0.1/"),
        LoginStage::Discovery,
    ),
    (
        "a page of a script",
        |w| server(w, "authorization_endpoint", "javascript:alert(1)"),
        LoginStage::Discovery,
    ),
    (
        "a page of a file",
        |w| server(w, "authorization_endpoint", "file:///x"),
        LoginStage::Discovery,
    ),
    (
        "a page without TLS",
        |w| server(w, "authorization_endpoint", "http://as.example/a"),
        LoginStage::Discovery,
    ),
    (
        "no page",
        |w| server(w, "authorization_endpoint", json!(null)),
        LoginStage::Discovery,
    ),
    (
        "a list for a text",
        |w| server(w, "token_endpoint", json!(["x"])),
        LoginStage::Discovery,
    ),
    // R-AUC-07
    (
        "no PKCE",
        |w| server(w, "code_challenge_methods_supported", json!(null)),
        LoginStage::Authorization,
    ),
    (
        "PKCE without S256",
        |w| server(w, "code_challenge_methods_supported", json!(["plain"])),
        LoginStage::Authorization,
    ),
    // The client's own side.
    (
        "a redirect URI without TLS",
        |w| w.redirect_uri = "http://client.example/cb".into(),
        LoginStage::Options,
    ),
    (
        "a redirect URI of a script",
        |w| w.redirect_uri = "javascript:x".into(),
        LoginStage::Options,
    ),
    (
        "a registration that is none",
        |w| w.registration = json!({"id": 1}),
        LoginStage::Registration,
    ),
];

const ANSWERS: &[Case] = &[
    // R-AUC-18
    (
        "another state",
        |w| back(w, |_| "code=secret-code&state=other".into()),
        LoginStage::Authorization,
    ),
    (
        "no state",
        |w| back(w, |_| "code=secret-code".into()),
        LoginStage::Authorization,
    ),
    (
        "the state twice",
        |w| back(w, |s| format!("code=secret-code&state={s}&state={s}")),
        LoginStage::Authorization,
    ),
    (
        "no code",
        |w| back(w, |s| format!("state={s}")),
        LoginStage::Authorization,
    ),
    (
        "the code twice",
        |w| back(w, |s| format!("code=a&code=b&state={s}")),
        LoginStage::Authorization,
    ),
    // R-AUC-14
    (
        "another iss",
        |w| {
            back(w, |s| {
                format!("code=secret-code&state={s}&iss=https://evil.example")
            })
        },
        LoginStage::Authorization,
    ),
    (
        "iss with a slash",
        |w| {
            back(w, |s| {
                format!("code=secret-code&state={s}&iss=https://as.example/")
            })
        },
        LoginStage::Authorization,
    ),
    (
        "iss in capitals",
        |w| {
            back(w, |s| {
                format!("code=secret-code&state={s}&iss=https://AS.example")
            })
        },
        LoginStage::Authorization,
    ),
    (
        "an error with another iss",
        |w| back(w, |s| format!("error=x&state={s}&iss=https://evil.example")),
        LoginStage::Authorization,
    ),
    (
        "no iss where it is promised",
        |w| {
            server(w, "authorization_response_iss_parameter_supported", true);
            back(w, |s| format!("code=secret-code&state={s}"));
        },
        LoginStage::Authorization,
    ),
    (
        "a refusal",
        |w| back(w, |s| format!("error=access_denied&state={s}")),
        LoginStage::Authorization,
    ),
];

const TOKENS: &[Case] = &[
    (
        "a token of another type",
        |w| {
            granted(
                w,
                json!({"access_token": "secret-access", "token_type": "mac"}),
            )
        },
        LoginStage::Token,
    ),
    (
        "a bound token without a key",
        |w| {
            granted(
                w,
                json!({"access_token": "secret-access", "token_type": "DPoP"}),
            )
        },
        LoginStage::Token,
    ),
    (
        "an empty token",
        |w| granted(w, json!({"access_token": "", "token_type": "Bearer"})),
        LoginStage::Token,
    ),
    (
        "no token",
        |w| granted(w, json!({"token_type": "Bearer"})),
        LoginStage::Token,
    ),
    (
        "an error that repeats secrets",
        |w| {
            let (status, headers, _) = error("");
            let said = "secret-code secret-client \u{1b}[31m".repeat(100);
            let body = json!({"error": "invalid_grant", "error_description": said});
            w.tokens.push_back((status, headers, body));
        },
        LoginStage::Token,
    ),
    (
        "an error of another kind",
        |w| w.tokens.push_back((500, Vec::new(), json!("secret-code"))),
        LoginStage::Token,
    ),
];

/// How errors begin to say what to do.
const TO_DO: [&str; 7] = [
    "; ask ",
    "; connect ",
    "; give ",
    "; register ",
    "; set ",
    "; try ",
    "log in ",
];

/// R-AUC-06, R-AUC-07, R-AUC-09, R-AUC-14, R-AUC-18, R-AUC-19
#[test]
fn hostile_servers_get_nothing() {
    let groups = [(METADATA, 0, 0), (ANSWERS, 1, 0), (TOKENS, 1, 1)];
    for (cases, pages, tokens) in groups {
        for (name, change, stage) in cases {
            let mut world = World::new();
            world.registration = json!({"client_id": "dynamic", "client_secret": "secret-client"});
            change(&mut world);
            let error = world.log_in().expect_err(name);
            assert_eq!(error.stage, *stage, "{name}: {error}");
            assert_eq!(world.pages.len(), pages, "{name}: pages");
            assert_eq!(world.forms().len(), tokens, "{name}: requests for tokens");
            // The text is for people: bounded, without secrets and control characters.
            let text = format!("{error} {error:?}");
            assert!(
                text.len() < 1500 && !text.contains(char::is_control),
                "{name}: {text}"
            );
            let says_what_to_do = TO_DO.iter().any(|what| text.contains(what));
            assert!(says_what_to_do, "{name}: {text}");
            let leaked = SECRETS.iter().find(|secret| text.contains(*secret));
            assert_eq!(leaked, None, "{name}: {text}");
        }
    }
}

/// R-AUC-17: nothing that is shown in a log has a secret.
#[test]
fn what_is_shown_has_no_secrets() {
    let mut world = World::new();
    world.registration = json!({"client_id": "dynamic", "client_secret": "secret-client"});
    world.options.client_secret = Some("secret-client".into());
    let credentials = world.log_in().unwrap();
    let occasion = Occasion::new(SERVER, Some(credentials.clone()));
    let shown = format!(
        "{credentials:?} {occasion:?} {:?} {:?}",
        world.options, world.requests
    );
    for secret in SECRETS {
        assert!(!shown.contains(secret), "{shown}");
    }
}

/// R-AUC-17: the private key of bound tokens is shown nowhere, in whatever form, and in no request.
#[test]
fn a_key_is_neither_shown_nor_sent() {
    let bound =
        |token: &str| json!({"access_token": token, "token_type": "DPoP", "refresh_token": "r"});
    let mut world = World::new();
    world.options.dpop = Some(true);
    granted(&mut world, bound("secret-access"));
    let held = world.log_in().unwrap();
    let place = format!("tokens {ISSUER} dynamic {SERVER} {SERVER}");
    let document = block_on(world.store.load(&place)).unwrap().unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    let stored = document["dpop_key"].as_str().unwrap();
    let key = DpopKey::read(stored).unwrap();
    let headers = held.headers("POST", SERVER, Some("n"), world.now).unwrap();
    let tokens = block_on(tokens::load(&*world.store, &place)).unwrap();
    let mut shown = vec![
        format!("{held:?} {key:?} {:?} {tokens:?} {headers:?}", world.store),
        format!("{:?}", Occasion::new(SERVER, Some(held.clone()))),
    ];
    // Errors of later refreshes, and of a document that is damaged.
    for answer in [bound(""), bound("x\n"), json!({"error": "invalid_grant"})] {
        world.now += 3600;
        let status = if answer["error"].is_null() { 200 } else { 400 };
        world.tokens.push_back((status, Vec::new(), answer));
        let occasion = Occasion {
            is_refreshed: false,
            status: 401,
            ..Occasion::new(SERVER, Some(held.clone()))
        };
        match world.run(occasion) {
            Err(error) => shown.push(format!("{error} {error:?}")),
            Ok(held) => shown.push(format!("{held:?}")),
        }
    }
    let cut = document.to_string();
    block_on(world.store.save(&place, &cut[..cut.len() - 1])).unwrap();
    let error = block_on(tokens::load(&*world.store, &place)).unwrap_err();
    shown.push(format!("{error} {error:?}"));
    shown.extend(world.requests.iter().map(|it| {
        let sent = format!("{} {} {:?}", it.url, it.body, it.headers);
        format!("{it:?} {sent}")
    }));
    let pkcs8 = URL_SAFE_NO_PAD.decode(stored).unwrap();
    // The private value: 32 bytes of a version and an octet string (RFC 5915, section 3).
    let before = [2, 1, 1, 4, 32];
    let at = pkcs8.windows(5).position(|it| it == before).unwrap() + 5;
    let secret = &pkcs8[at..at + 32];
    let pem = STANDARD.encode(&pkcs8);
    let numbers = format!("{:?}", &secret[..8]);
    let hex: String = secret.iter().map(|it| format!("{it:02x}")).collect();
    let forms = [
        stored.to_owned(),
        URL_SAFE_NO_PAD.encode(secret),
        STANDARD.encode(secret),
        pem[..64].to_owned(),
        pem[64..128].to_owned(),
        numbers.trim_matches(['[', ']']).to_owned(),
        hex.to_lowercase(),
        hex.to_uppercase(),
    ];
    assert!(document.to_string().contains(&forms[0]));
    for text in shown {
        let leaked = forms.iter().find(|form| text.contains(&***form));
        assert_eq!(leaked, None, "{text}");
    }
}

/// R-AUC-19: how far inside an address is.
#[test]
fn inner_addresses_are_known() {
    let table = [
        (
            Zone::Public,
            "1.1.1.1 8.8.8.8 172.32.0.1 192.169.0.1 100.128.0.1 2606:4700::1111 64:ff9b::808:808 2002:808:808::1",
        ),
        (
            Zone::Private,
            "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 fc00::1 fdff::1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:a00:1::",
        ),
        (
            Zone::Loopback,
            "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::1",
        ),
        (
            Zone::Never,
            "0.0.0.0 169.254.169.254 224.0.0.1 255.255.255.255 240.0.0.1 192.0.0.192 198.18.0.1 :: fe80::1 ff02::1 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe:: 2001::1 2001:db8::1 ::127.0.0.1 fec0::1",
        ),
    ];
    for (zone, addresses) in table {
        for address in addresses.split(' ') {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(Zone::of(address), zone, "{address}");
            for of_server in [Zone::Public, Zone::Private, Zone::Loopback] {
                for allows_private in [false, true] {
                    let guard = UrlGuard::new(of_server, allows_private);
                    let expected = zone != Zone::Never
                        && (zone <= of_server || allows_private && zone == Zone::Private);
                    assert_eq!(guard.allows(address), expected, "{address} {of_server:?}");
                }
            }
        }
    }
}

/// R-AUC-19: addresses as people hide them.
#[test]
fn inner_hosts_are_recognised_in_every_spelling() {
    let guard = UrlGuard::new(Zone::Public, false);
    let bad = [
        "https://127.1",
        "https://2130706433",
        "https://0x7f000001",
        "https://0177.0.0.1",
        "https://127.0.0.1.",
        "https://LOCALHOST",
        "https://localhost.",
        "https://x.localhost",
        "https://[::1]",
        "https://[::ffff:7f00:1]",
        "https://0",
        "https://10.1",
        "https://169.254.43518",
        "https://\u{ff11}27.0.0.1",
        "https://[::]",
        "http://as.example",
        "https://a:b@as.example",
        "ftp://as.example",
        "//as.example",
        "",
        "https://",
        "https:///x:y:z",
        "data:text/plain,x",
    ];
    for url in bad {
        assert!(guard.check(url).is_err(), "{url}");
    }
    for url in [
        "https://as.example",
        "https://1.1.1.1/x",
        "HTTPS://as.example:8443/?q",
    ] {
        assert!(guard.check(url).is_ok(), "{url}");
    }
    // A server on this machine names others on it.
    let local = UrlGuard::new(Zone::Loopback, false);
    for url in [
        "http://localhost:1",
        "http://127.0.0.1:1/x",
        "https://10.0.0.1",
    ] {
        assert!(local.check(url).is_ok(), "{url}");
    }
    assert!(local.check("http://10.0.0.1").is_err());
    assert!(local.check("https://169.254.169.254").is_err());
}

/// Random damage to every document and answer: an error or a login, never a panic, never an endless one.
#[test]
fn damaged_documents_end_in_an_error() {
    let mut seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(7_u64);
    println!("SEED={seed}");
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below.max(1) as u64) as usize
    };
    let strange = [
        json!(null),
        json!(""),
        json!(0),
        json!(-1),
        json!([]),
        json!({}),
        json!([null]),
        json!(true),
        json!("https://["),
        json!("https://\u{0}"),
        json!(1e300),
        json!("x".repeat(100_000)),
        json!(ISSUER),
    ];
    for _ in 0..300 {
        let mut world = World::new();
        for _ in 0..=random(3) {
            let value = strange[random(strange.len())].clone();
            let document = match random(3) {
                0 => world.document(PRM),
                1 => world.document(AS),
                _ => &mut world.registration,
            };
            let names: Vec<_> = document.as_object().unwrap().keys().cloned().collect();
            document[&names[random(names.len())]] = value;
        }
        let (_, _, mut body) = crate::world::tokens();
        let names: Vec<_> = body.as_object().unwrap().keys().cloned().collect();
        body[&names[random(names.len())]] = strange[random(strange.len())].clone();
        world.tokens.push_back((200, Vec::new(), body));
        if let Err(error) = world.log_in() {
            assert!(error.to_string().len() < 1500, "{error}");
        }
        assert!(world.requests.len() < 12);
    }
}

#[test]
fn secrets_that_a_server_repeats_are_not_shown_in_part_or_as_a_code() {
    let said = [
        // Cut within the secret.
        json!({"error": "invalid_grant", "error_description": format!("{}secret-code", "x".repeat(192))}),
        json!({"error": "secret-code"}),
    ];
    for body in said {
        let mut world = World::new();
        world.tokens.push_back((400, Vec::new(), body));
        let error = world.log_in().unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains("secret-"),
            "{error:?}"
        );
    }
}
