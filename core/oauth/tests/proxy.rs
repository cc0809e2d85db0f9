//! The consent proxy, from registration to refreshed tokens, with every step that may go wrong.
#![cfg(feature = "proxy")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test"
)]

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

use mcpbolt_oauth::proxy::{
    ConsentProxy, ConsentProxyOptions, Fetch, FetchRequest, FetchResponse, Fetched, ProxyReply,
    ProxyRequest, Upstream,
};
use serde_json::{Value, json};
use url::Url;
use url::form_urlencoded::{Serializer, parse};

const ISSUER: &str = "https://api.example/auth";
const RESOURCE: &str = "https://api.example/mcp";
const REDIRECT: &str = "https://client.example/back";
const VERIFIER: &str = "a-verifier-of-a-client-that-is-long-enough-to-be-one";
const NOW: u64 = 1_800_000_000;

/// An identity provider: codes are good once and need the right verifier; refresh tokens rotate.
#[derive(Default)]
struct Provider {
    /// The challenges of codes that were given.
    codes: Mutex<HashMap<String, String>>,
    refreshes: Mutex<HashMap<String, ()>>,
    count: Mutex<u32>,
    is_away: Mutex<bool>,
    /// Whether it takes its time.
    waits: AtomicBool,
    /// What it answers instead.
    says: Mutex<Option<(u16, &'static str)>>,
    revoked: Mutex<Vec<String>>,
}

impl Provider {
    /// Logs a user in: what `location` of the proxy asks for becomes the query of the callback.
    fn log_in(&self, location: &str) -> String {
        let asked = Url::parse(location).unwrap();
        let asked: HashMap<_, _> = asked.query_pairs().into_owned().collect();
        assert_eq!(asked["client_id"], "the-one-client");
        assert_eq!(asked["redirect_uri"], format!("{ISSUER}/callback"));
        assert_eq!(asked["code_challenge_method"], "S256");
        let code = format!("upstream-code-{}", self.next());
        let mut codes = self.codes.lock().unwrap();
        codes.insert(code.clone(), asked["code_challenge"].clone());
        query(&[("code", &code), ("state", &asked["state"])])
    }

    fn next(&self) -> u32 {
        let mut count = self.count.lock().unwrap();
        *count += 1;
        *count
    }

    fn answer(&self, request: &FetchRequest) -> Result<FetchResponse, String> {
        if *self.is_away.lock().unwrap() {
            return Err("no route".into());
        }
        if let Some((status, body)) = *self.says.lock().unwrap() {
            let body = body.as_bytes().to_vec();
            return Ok(FetchResponse { status, body });
        }
        let basic = request
            .headers
            .iter()
            .find(|(name, _)| *name == "authorization");
        // the-one-client:s%26cret, encoded as RFC 6749 has it.
        assert_eq!(basic.unwrap().1, "Basic dGhlLW9uZS1jbGllbnQ6cyUyNmNyZXQ=");
        let form: HashMap<_, _> = parse(request.body.as_bytes()).into_owned().collect();
        if let Some(token) = form.get("token") {
            self.revoked.lock().unwrap().push(token.clone());
            return Ok(FetchResponse {
                status: 200,
                body: Vec::new(),
            });
        }
        let is_good = match &*form["grant_type"] {
            "authorization_code" => {
                let challenge = self.codes.lock().unwrap().remove(&form["code"]);
                challenge == Some(s256(&form["code_verifier"]))
            }
            _ => self
                .refreshes
                .lock()
                .unwrap()
                .remove(&form["refresh_token"])
                .is_some(),
        };
        if !is_good {
            let body = br#"{"error":"invalid_grant"}"#.to_vec();
            return Ok(FetchResponse { status: 400, body });
        }
        let number = self.next();
        let refresh = format!("upstream-refresh-{number}");
        self.refreshes.lock().unwrap().insert(refresh.clone(), ());
        let body = json!({
            "access_token": format!("upstream-access-{number}"),
            "token_type": "Bearer",
            // Some providers write numbers so.
            "expires_in": "600",
            "refresh_token": refresh,
            // {"sub":"alice"}
            "id_token": "e30.eyJzdWIiOiJhbGljZSJ9.c2ln",
        });
        Ok(FetchResponse {
            status: 200,
            body: body.to_string().into(),
        })
    }
}

impl Fetch for Provider {
    fn fetch(&self, request: FetchRequest) -> Fetched<'_> {
        Box::pin(poll_fn(move |_| match self.waits.load(SeqCst) {
            true => Poll::Pending,
            false => Poll::Ready(self.answer(&request)),
        }))
    }
}

fn s256(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD
        .encode(hmac_sha256::Hash::hash(text.as_bytes()))
}

fn query(pairs: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// A browser or a client, and the proxy.
struct Site {
    proxy: ConsentProxy,
    provider: Provider,
    /// The cookies of the browser.
    cookies: HashMap<String, String>,
    now: u64,
    /// Whether the client leaves before it is answered.
    leaves: AtomicBool,
}

fn proxy(change: impl FnOnce(&mut ConsentProxyOptions)) -> ConsentProxy {
    let mut upstream = Upstream::new(
        "https://login.example/authorize",
        "https://login.example/token",
        "the-one-client",
    );
    upstream.client_secret = Some("s&cret".into());
    upstream.revocation_endpoint = Some("https://login.example/revoke".into());
    let mut options = ConsentProxyOptions::new(ISSUER, RESOURCE, upstream);
    options.scopes = vec!["files:read".into(), "files:write".into()];
    change(&mut options);
    ConsentProxy::new(options, &[7; 32]).unwrap()
}

impl Site {
    fn new() -> Self {
        Self {
            proxy: proxy(|_| {}),
            provider: Provider::default(),
            cookies: HashMap::new(),
            now: NOW,
            leaves: AtomicBool::new(false),
        }
    }

    fn ask(&mut self, method: &str, path: &str, query: &str, body: &str) -> ProxyReply {
        let cookies: Vec<_> = self
            .cookies
            .iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect();
        let cookies = cookies.join("; ");
        let mut request = ProxyRequest::new(method, path, query);
        request.cookies = &cookies;
        request.content_type = match body.starts_with('{') {
            true => "application/json",
            false => "application/x-www-form-urlencoded",
        };
        request.body = body.as_bytes();
        request.left = Some(&self.leaves);
        let reply = ready(self.proxy.handle(&request, self.now, &self.provider));
        for (name, value) in &reply.headers {
            if *name == "set-cookie" {
                let (name, rest) = value.split_once('=').unwrap();
                let (value, attributes) = rest.split_once(';').unwrap();
                assert!(name.starts_with("__Host-") && attributes.contains("Secure; HttpOnly"));
                match value {
                    "" => self.cookies.remove(name),
                    value => self.cookies.insert(name.into(), value.into()),
                };
            }
        }
        reply
    }

    fn register(&mut self, redirects: &[&str]) -> String {
        let body = json!({"redirect_uris": redirects, "client_name": "A <b>client</b>"});
        let reply = self.ask("POST", "/auth/register", "", &body.to_string());
        assert_eq!(reply.status, 201, "{}", reply.body);
        body_of(&reply)["client_id"].as_str().unwrap().to_owned()
    }

    fn authorize(&mut self, client: &str, change: &[(&str, &str)]) -> ProxyReply {
        let challenge = s256(VERIFIER);
        let mut asked = vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("state", "a state"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("scope", "files:read"),
            ("resource", RESOURCE),
        ];
        for (name, value) in change {
            asked.retain(|(own, _)| own != name);
            asked.push((name, value));
        }
        self.ask("GET", "/auth/authorize", &query(&asked), "")
    }

    fn consent(&mut self, page: &ProxyReply, answer: &str) -> ProxyReply {
        let sealed = hidden(page);
        let body = query(&[("request", &sealed), ("answer", answer)]);
        self.ask("POST", "/auth/consent", "", &body)
    }

    /// A login up to the code; the redirect, if the page was not shown.
    fn code(&mut self, client: &str, redirect: &str) -> String {
        let page = self.authorize(client, &[("redirect_uri", redirect)]);
        let to_provider = match page.status {
            200 => self.consent(&page, "allow"),
            _ => page,
        };
        let back = self.provider.log_in(location(&to_provider));
        let reply = self.ask("GET", "/auth/callback", &back, "");
        let answer = answered(&reply);
        assert_eq!((&*answer["iss"], &*answer["state"]), (ISSUER, "a state"));
        answer["code"].clone()
    }

    fn redeem(&mut self, client: &str, code: &str, change: &[(&str, &str)]) -> ProxyReply {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ];
        for (name, value) in change {
            form.retain(|(own, _)| own != name);
            form.push((name, value));
        }
        self.ask("POST", "/auth/token", "", &query(&form))
    }

    fn refresh(&mut self, client: &str, token: &str) -> ProxyReply {
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token),
            ("client_id", client),
        ];
        self.ask("POST", "/auth/token", "", &query(&form))
    }
}

/// The result of a future that never waits.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(it) => it,
        Poll::Pending => panic!("nothing to wait for"),
    }
}

fn header<'a>(reply: &'a ProxyReply, name: &str) -> Option<&'a str> {
    let found = reply.headers.iter().find(|(own, _)| *own == name);
    found.map(|(_, value)| &**value)
}

fn location(reply: &ProxyReply) -> &str {
    assert_eq!(reply.status, 302, "{}", reply.body);
    header(reply, "location").unwrap()
}

/// The parameters of an answer to the client.
fn answered(reply: &ProxyReply) -> HashMap<String, String> {
    let to = Url::parse(location(reply)).unwrap();
    to.query_pairs().into_owned().collect()
}

fn body_of(reply: &ProxyReply) -> Value {
    serde_json::from_str(&reply.body).unwrap()
}

fn hidden(page: &ProxyReply) -> String {
    assert_eq!(page.status, 200, "{}", page.body);
    let (_, rest) = page.body.split_once("name=\"request\" value=\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

/// The error that a client or a user is told.
fn error(reply: &ProxyReply) -> String {
    match reply.status {
        302 => answered(reply)["error"].clone(),
        _ if reply.body.starts_with('{') => body_of(reply)["error"].as_str().unwrap().to_owned(),
        status => format!("page {status}"),
    }
}

/// R-AUA-01, R-AUA-02, R-AUA-03, R-AUS-12
#[test]
fn a_client_registers_the_user_consents_and_the_client_gets_tokens() {
    let mut site = Site::new();
    let metadata = site.ask(
        "GET",
        "/.well-known/oauth-authorization-server/auth",
        "",
        "",
    );
    let metadata = body_of(&metadata);
    assert_eq!(metadata["issuer"], ISSUER);
    assert_eq!(
        metadata["code_challenge_methods_supported"],
        json!(["S256"])
    );
    assert_eq!(
        metadata["authorization_response_iss_parameter_supported"],
        true
    );

    let client = site.register(&[REDIRECT]);
    let page = site.authorize(&client, &[]);
    assert!(
        page.body.contains("A &lt;b&gt;client&lt;/b&gt;") && page.body.contains("client.example")
    );
    assert!(
        header(&page, "content-security-policy")
            .unwrap()
            .contains("frame-ancestors 'none'")
    );
    assert_eq!(header(&page, "x-frame-options"), Some("DENY"));
    assert!(
        !site.cookies.contains_key("__Host-mcpbolt-login"),
        "no login before there is consent"
    );

    let to_provider = site.consent(&page, "allow");
    let back = site.provider.log_in(location(&to_provider));
    let reply = site.ask("GET", "/auth/callback", &back, "");
    let answer = answered(&reply);
    let reply = site.redeem(&client, &answer["code"], &[]);
    let tokens = body_of(&reply);
    assert_eq!(
        (&tokens["expires_in"], &tokens["scope"]),
        (&json!(600), &json!("files:read"))
    );
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(
        site.proxy.upstream_token(access).as_deref(),
        Ok("upstream-access-2")
    );
    assert!(site.proxy.upstream_token("e30.e30.e30").is_err());
    let all = format!(
        "{}{}",
        reply.body,
        reply.headers.iter().map(|(_, v)| &**v).collect::<String>()
    );
    assert!(
        !all.contains("upstream-"),
        "a client sees nothing of the provider: {all}"
    );

    // The token says for whom, by whom and for which server it is.
    let claims = access.split('.').nth(1).unwrap();
    use base64::Engine as _;
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(claims)
        .unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    let named = [
        &claims["iss"],
        &claims["aud"],
        &claims["sub"],
        &claims["client_id"],
    ];
    assert_eq!(named, [ISSUER, RESOURCE, "alice", &client]);

    let said = site.proxy.verify(access, NOW).unwrap();
    assert_eq!(
        (&*said.subject, &*said.client_id, said.expires_at),
        ("alice", &*client, NOW + 600)
    );
    assert_eq!(said.scopes, ["files:read"]);
    let refused = |token, now| site.proxy.verify(token, now).unwrap_err().to_string();
    assert_eq!(refused(access, NOW + 600), "the token has expired");
    assert_eq!(
        refused("e30.e30.e30", NOW),
        "the token is none of this server"
    );

    let refreshed = body_of(&site.refresh(&client, tokens["refresh_token"].as_str().unwrap()));
    assert_eq!(refreshed["scope"], "files:read");
    let again = refreshed["refresh_token"].as_str().unwrap().to_owned();
    // Used twice: the login is over, also for who used it first.
    let twice = site.refresh(&client, tokens["refresh_token"].as_str().unwrap());
    assert_eq!(error(&twice), "invalid_grant");
    assert_eq!(error(&site.refresh(&client, &again)), "invalid_grant");

    let code = site.code(&client, REDIRECT);
    let tokens = body_of(&site.redeem(&client, &code, &[]));
    assert_eq!(error(&site.redeem(&client, &code, &[])), "invalid_grant");
    let over = site.refresh(&client, tokens["refresh_token"].as_str().unwrap());
    assert_eq!(error(&over), "invalid_grant", "a code was used twice");
}

/// R-CHN-20
#[test]
fn an_approval_counts_for_one_client_with_one_address_in_one_browser() {
    let mut site = Site::new();
    let client = site.register(&[REDIRECT]);
    site.code(&client, REDIRECT);
    assert_eq!(site.authorize(&client, &[]).status, 302, "approved before");
    assert_eq!(
        site.authorize(&client, &[("scope", "files:write")]).status,
        200
    );
    let other = site.register(&[REDIRECT, "https://client.example/other"]);
    assert_eq!(
        site.authorize(&other, &[]).status,
        200,
        "each client is asked for"
    );
    let refused = site.authorize(&other, &[("prompt", "none")]);
    assert_eq!(error(&refused), "consent_required");
    site.now += 31 * 24 * 3600;
    assert_eq!(site.authorize(&client, &[]).status, 200, "an approval ends");
    site.cookies.clear();
    assert_eq!(site.authorize(&client, &[]).status, 200);

    // Any program of this machine can take an address on it: the user is asked each time.
    let local = site.register(&["http://127.0.0.1:1234/back"]);
    let back = "http://127.0.0.1:56789/back";
    site.code(&local, back);
    assert_eq!(
        site.authorize(&local, &[("redirect_uri", back)]).status,
        200
    );
}

#[test]
fn what_may_not_be_registered() {
    let mut site = Site::new();
    let mut refused =
        |body: Value| error(&site.ask("POST", "/auth/register", "", &body.to_string()));
    for uri in [
        "http://client.example/back",
        "https://user@client.example/back",
        "https://client.example/back#part",
        "https:\\\\client.example\\back",
        "https://client.example/ back",
        "javascript:alert(1)",
        "data:text/html,x",
        "cursor://back",
        "/back",
        "",
    ] {
        assert_eq!(
            refused(json!({"redirect_uris": [uri]})),
            "invalid_redirect_uri",
            "{uri}"
        );
    }
    let many: Vec<_> = (0..11)
        .map(|n| format!("https://client.example/{n}"))
        .collect();
    assert_eq!(
        refused(json!({"redirect_uris": many})),
        "invalid_redirect_uri"
    );
    let long = format!("https://client.example/{}", "a".repeat(1500));
    assert_eq!(
        refused(json!({"redirect_uris": [long]})),
        "invalid_redirect_uri"
    );
    assert_eq!(refused(json!({})), "invalid_redirect_uri");
    assert_eq!(
        refused(json!({"redirect_uris": REDIRECT})),
        "invalid_client_metadata"
    );
    let wrong = json!({"redirect_uris": [REDIRECT], "response_types": ["token"]});
    assert_eq!(refused(wrong), "invalid_client_metadata");
    let wrong = json!({"redirect_uris": [REDIRECT], "grant_types": ["implicit"]});
    assert_eq!(refused(wrong), "invalid_client_metadata");

    site.proxy = proxy(|options| options.redirect_hosts = vec!["*.client.example".into()]);
    let mut registers = |uri: &str| {
        let body = json!({"redirect_uris": [uri]}).to_string();
        site.ask("POST", "/auth/register", "", &body).status
    };
    assert_eq!(registers("https://a.client.example/back"), 201);
    assert_eq!(registers("http://localhost/back"), 201);
    assert_eq!(registers("https://client.example.evil.example/back"), 400);
    assert_eq!(registers("https://evilclient.example/back"), 400);
}

#[test]
fn a_wrong_request_is_refused_and_leads_only_to_a_registered_address() {
    let mut site = Site::new();
    let client = site.register(&[REDIRECT]);
    for (change, refusal) in [
        (("client_id", "nobody"), "page 400"),
        (("redirect_uri", "https://evil.example/back"), "page 400"),
        (("redirect_uri", "https://client.example/back/"), "page 400"),
        (
            ("redirect_uri", "https://client.example:8443/back"),
            "page 400",
        ),
        (("state", &*"s".repeat(1025)), "page 400"),
        (("response_type", "token"), "unsupported_response_type"),
        (("code_challenge", ""), "invalid_request"),
        (("code_challenge", "short"), "invalid_request"),
        (("code_challenge_method", "plain"), "invalid_request"),
        (("resource", "https://other.example/mcp"), "invalid_target"),
        (("scope", "files:read admin"), "invalid_scope"),
    ] {
        assert_eq!(
            error(&site.authorize(&client, &[change])),
            refusal,
            "{change:?}"
        );
    }
    let twice = query(&[("client_id", &client), ("client_id", &client)]);
    assert_eq!(
        error(&site.ask("GET", "/auth/authorize", &twice, "")),
        "page 400"
    );
    assert_eq!(site.ask("POST", "/auth/authorize", "", "a=b").status, 405);
    assert_eq!(site.ask("GET", "/auth/token", "", "").status, 405);
    assert_eq!(site.ask("OPTIONS", "/auth/token", "", "").status, 204);
    assert_eq!(site.ask("OPTIONS", "/auth/consent", "", "").status, 405);
    assert_eq!(site.ask("GET", "/auth/nothing", "", "").status, 404);
    assert!(site.proxy.serves("/auth/jwks") && !site.proxy.serves("/jwks"));
}

#[test]
fn an_answer_counts_from_the_page_that_asked_in_its_browser_and_in_time() {
    let mut site = Site::new();
    let client = site.register(&[REDIRECT]);
    let page = site.authorize(&client, &[]);
    assert_eq!(error(&site.consent(&page, "deny")), "access_denied");

    let page = site.authorize(&client, &[]);
    let stolen = std::mem::take(&mut site.cookies);
    assert_eq!(error(&site.consent(&page, "allow")), "page 400");
    site.authorize(&client, &[]);
    assert_eq!(
        error(&site.consent(&page, "allow")),
        "page 400",
        "another page's cookie"
    );
    site.cookies = stolen;
    let body = query(&[("request", &hidden(&page)), ("answer", "allow")]);
    for (origin, site_of) in [
        (Some("https://evil.example"), None),
        (Some("null"), None),
        (None, Some("cross-site")),
    ] {
        let cookies: Vec<_> = site
            .cookies
            .iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect();
        let cookies = cookies.join("; ");
        let mut request = ProxyRequest::new("POST", "/auth/consent", "");
        request.cookies = &cookies;
        request.content_type = "application/x-www-form-urlencoded";
        request.body = body.as_bytes();
        (request.origin, request.fetch_site) = (origin, site_of);
        let reply = ready(site.proxy.handle(&request, NOW, &site.provider));
        assert_eq!(error(&reply), "page 400", "{origin:?} {site_of:?}");
    }
    site.now += 600;
    assert_eq!(error(&site.consent(&page, "allow")), "page 400", "too late");
}

#[test]
fn a_login_ends_in_the_browser_that_began_it_once() {
    let mut site = Site::new();
    let client = site.register(&[REDIRECT]);
    let page = site.authorize(&client, &[]);
    let to_provider = site.consent(&page, "allow");
    let back = site.provider.log_in(location(&to_provider));
    // The link of somebody else's login: their code in the user's browser, or the reverse.
    let own = std::mem::take(&mut site.cookies);
    assert_eq!(
        error(&site.ask("GET", "/auth/callback", &back, "")),
        "page 400"
    );
    site.cookies = own;
    assert_eq!(
        error(&site.ask("GET", "/auth/callback", "code=x&state=y", "")),
        "page 400"
    );
    let reply = site.ask("GET", "/auth/callback", &back, "");
    assert!(answered(&reply).contains_key("code"));
    assert_eq!(
        error(&site.ask("GET", "/auth/callback", &back, "")),
        "page 400",
        "a second time"
    );

    for (answer, told) in [
        ("error=access_denied", "access_denied"),
        ("error=temporarily_unavailable", "temporarily_unavailable"),
        ("error=%3Cscript%3E", "server_error"),
        ("nothing=", "server_error"),
    ] {
        let to_provider = site.authorize(&client, &[]);
        let state = Url::parse(location(&to_provider)).unwrap();
        let (_, state) = state
            .query_pairs()
            .find(|(name, _)| name == "state")
            .unwrap();
        let back = format!("{answer}&state={state}");
        assert_eq!(error(&site.ask("GET", "/auth/callback", &back, "")), told);
    }
    // Another provider's answer (RFC 9207).
    site.proxy = proxy(|options| options.upstream.issuer = Some("https://login.example".into()));
    for (iss, is_good) in [
        ("", false),
        ("&iss=https://evil.example", false),
        ("&iss=https://login.example", true),
    ] {
        let to_provider = site.authorize(&client, &[]);
        let back = site.provider.log_in(location(&to_provider));
        let reply = site.ask("GET", "/auth/callback", &format!("{back}{iss}"), "");
        assert_eq!(answered(&reply).contains_key("code"), is_good, "{iss}");
    }
}

#[test]
fn a_code_is_good_once_for_its_client_with_its_verifier() {
    let mut site = Site::new();
    let client = site.register(&[REDIRECT]);
    let other = site.register(&[REDIRECT]);
    let code = site.code(&client, REDIRECT);
    for change in [
        ("client_id", &*other),
        ("redirect_uri", "https://client.example/other"),
        (
            "code_verifier",
            "another-verifier-of-a-client-that-is-long-enough",
        ),
        ("code", "e30"),
    ] {
        let reply = site.redeem(&client, &code, &[change]);
        assert_eq!(error(&reply), "invalid_grant", "{change:?}");
    }
    let reply = site.redeem(&client, &code, &[("resource", "https://other.example/mcp")]);
    assert_eq!(error(&reply), "invalid_target");
    assert_eq!(
        error(&site.redeem(&client, &code, &[("grant_type", "password")])),
        "unsupported_grant_type"
    );
    assert_eq!(
        error(&site.redeem(&client, &code, &[("code_verifier", "")])),
        "invalid_request"
    );
    assert_eq!(site.redeem(&client, &code, &[]).status, 200);
    assert_eq!(error(&site.redeem(&client, &code, &[])), "invalid_grant");
    // In another process, too: the provider's own code is good once.
    site.proxy = proxy(|_| {});
    assert_eq!(error(&site.redeem(&client, &code, &[])), "invalid_grant");
    let late = site.code(&client, REDIRECT);
    site.now += 60;
    assert_eq!(error(&site.redeem(&client, &late, &[])), "invalid_grant");
    // Under another secret nothing is known.
    let options = ConsentProxyOptions::new(
        ISSUER,
        RESOURCE,
        Upstream::new("https://login.example/a", "https://login.example/t", "x"),
    );
    site.proxy = ConsentProxy::new(options, &[8; 32]).unwrap();
    assert_eq!(error(&site.authorize(&client, &[])), "page 400");
}

#[test]
fn a_provider_that_is_away_costs_no_login_and_a_revoked_login_is_over() {
    let mut site = Site::new();
    let client = site.register(&[REDIRECT]);
    let code = site.code(&client, REDIRECT);
    let tokens = body_of(&site.redeem(&client, &code, &[]));
    let refresh = tokens["refresh_token"].as_str().unwrap();
    // What is not about the token is none of the user's fault.
    for (status, body) in [
        (401, r#"{"error":"invalid_client"}"#),
        (403, "<html>blocked</html>"),
        (429, r#"{"error":"invalid_grant"}"#),
        (200, "{}"),
    ] {
        *site.provider.says.lock().unwrap() = Some((status, body));
        assert_eq!(site.refresh(&client, refresh).status, 503, "{body}");
        let code = site.code(&client, REDIRECT);
        assert_eq!(site.redeem(&client, &code, &[]).status, 503, "{body}");
        *site.provider.says.lock().unwrap() = None;
        assert_eq!(site.redeem(&client, &code, &[]).status, 200, "{body}");
    }
    *site.provider.is_away.lock().unwrap() = true;
    let reply = site.refresh(&client, refresh);
    assert_eq!(
        (reply.status, &*error(&reply)),
        (503, "temporarily_unavailable")
    );
    *site.provider.is_away.lock().unwrap() = false;
    let other = site.register(&[REDIRECT]);
    assert_eq!(
        error(&site.refresh(&other, refresh)),
        "invalid_grant",
        "another client"
    );
    let tokens = body_of(&site.refresh(&client, refresh));
    // An access token is revoked at the provider for its own client alone, and only before it ends.
    let access = tokens["access_token"].as_str().unwrap();
    for (of, now) in [(&*other, NOW), ("", NOW), (&*client, NOW + 600)] {
        site.now = now;
        let revoke = query(&[("token", access), ("client_id", of)]);
        assert_eq!(site.ask("POST", "/auth/revoke", "", &revoke).status, 200);
        assert!(
            site.provider.revoked.lock().unwrap().is_empty(),
            "{of} {now}"
        );
    }
    site.now = NOW;
    let revoke = query(&[("token", access), ("client_id", &client)]);
    assert_eq!(site.ask("POST", "/auth/revoke", "", &revoke).status, 200);
    let revoked = std::mem::take(&mut *site.provider.revoked.lock().unwrap());
    assert!(matches!(&*revoked, [one] if one.starts_with("upstream-access-")));

    let refresh = tokens["refresh_token"].as_str().unwrap();
    let revoke = query(&[("token", refresh), ("client_id", &client)]);
    assert_eq!(site.ask("POST", "/auth/revoke", "", &revoke).status, 200);
    assert_eq!(error(&site.refresh(&client, refresh)), "invalid_grant");
    let revoked = site.provider.revoked.lock().unwrap();
    assert!(matches!(&**revoked, [one] if one.starts_with("upstream-refresh-")));
}

/// R-AUC-17: a client that leaves before its tokens come loses no login: it gets them when it asks again, once. While it is
/// answered, a second request ends no login either.
#[test]
fn a_client_that_leaves_gets_its_tokens_when_it_asks_again() {
    let mut site = Site::new();
    let client = site.register(&[REDIRECT]);
    let code = site.code(&client, REDIRECT);
    site.leaves = true.into();
    let lost = site.redeem(&client, &code, &[]);
    site.leaves = false.into();
    let wrong = [(
        "code_verifier",
        "another-verifier-of-a-client-that-is-long-enough",
    )];
    assert_eq!(error(&site.redeem(&client, &code, &wrong)), "invalid_grant");
    // Long after the code's own end. The access token has lost that time.
    site.now += 599;
    let mut expected = body_of(&lost);
    assert_eq!(expected["expires_in"], 600);
    expected["expires_in"] = json!(1);
    assert_eq!(body_of(&site.redeem(&client, &code, &[])), expected);
    assert_eq!(error(&site.redeem(&client, &code, &[])), "invalid_grant");
    let late = site.code(&client, REDIRECT);
    site.leaves = true.into();
    assert_eq!(site.redeem(&client, &late, &[]).status, 200);
    site.leaves = false.into();
    site.now += 600;
    assert_eq!(error(&site.redeem(&client, &late, &[])), "invalid_grant");

    let mut refresh = body_of(&lost)["refresh_token"].as_str().unwrap().to_owned();
    for wait in [0, 599] {
        site.leaves = true.into();
        let lost = body_of(&site.refresh(&client, &refresh));
        site.leaves = false.into();
        site.now += wait;
        let other = site.register(&[REDIRECT]);
        assert_eq!(error(&site.refresh(&other, &refresh)), "invalid_grant");
        let mut expected = lost.clone();
        expected["expires_in"] = json!(600 - wait);
        assert_eq!(body_of(&site.refresh(&client, &refresh)), expected);
        refresh = lost["refresh_token"].as_str().unwrap().to_owned();
    }

    // It has given up too early, and asks again while the provider is still being asked.
    let form = query(&[
        ("grant_type", "refresh_token"),
        ("refresh_token", &refresh),
        ("client_id", &client),
    ]);
    let mut request = ProxyRequest::new("POST", "/auth/token", "");
    request.content_type = "application/x-www-form-urlencoded";
    request.body = form.as_bytes();
    let left = AtomicBool::new(false);
    request.left = Some(&left);
    let lost = {
        site.provider.waits.store(true, SeqCst);
        let mut first = pin!(site.proxy.handle(&request, site.now, &site.provider));
        let mut context = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut context).is_pending());
        left.store(true, SeqCst);
        let second = ready(site.proxy.handle(&request, site.now, &site.provider));
        assert_eq!(
            (second.status, &*error(&second)),
            (503, "temporarily_unavailable")
        );
        site.provider.waits.store(false, SeqCst);
        ready(first)
    };
    let again = site.refresh(&client, &refresh);
    assert_eq!((again.status, body_of(&again)), (200, body_of(&lost)));

    // Too late, or a third time: somebody else has the token, and the login is over.
    let refresh = body_of(&lost)["refresh_token"].as_str().unwrap().to_owned();
    site.leaves = true.into();
    let lost = body_of(&site.refresh(&client, &refresh));
    site.leaves = false.into();
    site.now += 600;
    assert_eq!(error(&site.refresh(&client, &refresh)), "invalid_grant");
    let newest = lost["refresh_token"].as_str().unwrap();
    assert_eq!(error(&site.refresh(&client, newest)), "invalid_grant");
}

#[test]
fn a_kept_reply_is_for_the_scopes_that_were_asked_for() {
    let mut site = Site::new();
    let client = site.register(&[REDIRECT]);
    let both = "files:read files:write";
    let page = site.authorize(&client, &[("scope", both)]);
    let to_provider = site.consent(&page, "allow");
    let back = site.provider.log_in(location(&to_provider));
    let code = answered(&site.ask("GET", "/auth/callback", &back, ""))["code"].clone();
    let mut refresh = body_of(&site.redeem(&client, &code, &[]))["refresh_token"].clone();
    for (first, other, same) in [
        ("files:read", both, "files:read"),
        (both, "files:write", "files:write files:read"),
    ] {
        let mut ask = |scope: &str, leaves: bool| {
            let form = query(&[
                ("grant_type", "refresh_token"),
                ("refresh_token", refresh.as_str().unwrap()),
                ("client_id", &client),
                ("scope", scope),
            ]);
            site.leaves = leaves.into();
            site.ask("POST", "/auth/token", "", &form)
        };
        let lost = body_of(&ask(first, true));
        assert_eq!(lost["scope"], first);
        assert_eq!(error(&ask(other, false)), "invalid_scope");
        assert_eq!(body_of(&ask(same, false)), lost);
        refresh = lost["refresh_token"].clone();
    }
}

/// RFC 9700, section 4.14.2: a login that is over stays so for its newest token, which lives longer than the one that
/// ended the login.
#[test]
fn a_login_that_is_over_is_over_for_its_newest_token() {
    for revokes in [false, true] {
        let mut site = Site::new();
        let client = site.register(&[REDIRECT]);
        let refresh_token =
            |reply: &ProxyReply| body_of(reply)["refresh_token"].as_str().unwrap().to_owned();
        let log_in = |site: &mut Site| {
            let code = site.code(&client, REDIRECT);
            refresh_token(&site.redeem(&client, &code, &[]))
        };
        let end = |site: &mut Site, token: &str| {
            if revokes {
                let revoke = query(&[("token", token), ("client_id", &client)]);
                assert_eq!(site.ask("POST", "/auth/revoke", "", &revoke).status, 200);
            } else {
                site.refresh(&client, token);
                assert_eq!(error(&site.refresh(&client, token)), "invalid_grant");
            }
        };
        let day = 24 * 3600;
        let first = log_in(&mut site);
        site.now += 10 * day;
        let newest = refresh_token(&site.refresh(&client, &first));
        end(&mut site, &first);
        // The first token's time is over, and another login that ends clears away what has ended.
        site.now = NOW + 30 * day + 1;
        let other = log_in(&mut site);
        end(&mut site, &other);
        assert_eq!(error(&site.refresh(&client, &newest)), "invalid_grant");
    }
}

/// A token that a resource server would refuse is not issued.
#[test]
fn a_token_of_the_provider_that_is_too_long_is_refused() {
    let mut site = Site::new();
    let client = site.register(&[REDIRECT]);
    for (length, status) in [(8000, 200), (12_000, 400)] {
        let code = site.code(&client, REDIRECT);
        let body = json!({"access_token": "a".repeat(length), "token_type": "Bearer"});
        let body: &str = body.to_string().leak();
        *site.provider.says.lock().unwrap() = Some((200, body));
        let reply = site.redeem(&client, &code, &[]);
        *site.provider.says.lock().unwrap() = None;
        assert_eq!(reply.status, status, "{length}: {}", reply.body);
        if status == 200 {
            let token = body_of(&reply)["access_token"].as_str().unwrap().to_owned();
            assert!(site.proxy.verify(&token, site.now).is_ok());
        } else {
            assert!(reply.body.contains("too long"), "{}", reply.body);
        }
    }
}

#[test]
fn wrong_options_are_refused_with_what_to_do() {
    let upstream = || Upstream::new("https://login.example/a", "https://login.example/t", "x");
    let why = |options: ConsentProxyOptions, secret: &[u8]| {
        ConsentProxy::new(options, secret).unwrap_err().to_string()
    };
    let good = || ConsentProxyOptions::new(ISSUER, RESOURCE, upstream());
    assert!(why(good(), b"short").contains("32 bytes"));
    for (change, said) in [
        (
            (|it| it.issuer = "http://api.example".into()) as fn(&mut ConsentProxyOptions),
            "issuer",
        ),
        (|it| it.issuer = "https://api.example/".into(), "slash"),
        (
            |it| it.issuer = "https://API.example:443".into(),
            "\"https://api.example\"",
        ),
        (
            |it| it.issuer = "https://api.example/a/../b".into(),
            "\"https://api.example/b\"",
        ),
        (|it| it.resource = "files".into(), "resource"),
        (
            |it| it.upstream.token_endpoint = "http://login.example/t".into(),
            "token_endpoint",
        ),
        (|it| it.upstream.client_id = String::new(), "client_id"),
        (|it| it.scopes = vec!["a b".into()], "\"a b\" is no scope"),
    ] {
        let mut options = good();
        change(&mut options);
        assert!(why(options, &[7; 32]).contains(said), "{said}");
    }
    let mut local = good();
    local.issuer = "http://localhost:8000".into();
    assert!(ConsentProxy::new(local, &[7; 32]).is_ok());
    let shown = format!("{:?}", proxy(|_| {}));
    assert!(!shown.contains("s&cret"));
}
