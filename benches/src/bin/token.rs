//! Calls over HTTP with access tokens: what the check of a token and of a proof costs. Answers are checked, then
//! contenders take turns, so that other load on the machine slows all of them. Figures are CPU time, medians over the
//! rounds.
//!
//! `cargo xtask bench token [--quick]`
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program that measures prints its figures and stops at the first surprise"
)]

use std::fs;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpbolt::io::http::{HttpOptions, HttpServer, Principal};
use mcpbolt::mcp::Revision;
use mcpbolt::policy::{Credentials, Policy, ProofUse, ResourceServer};
use mcpbolt::server::{Server, Tool, schemars, serde};
use mcpbolt_benches::harness::{Contender, measure};
use mcpbolt_benches::http::HttpCaller;
use mcpbolt_benches::rounds::{interval, median};
use mcpbolt_oauth::server::{PresentedToken, TokenCache, TokenDigester};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Connections, each with one call in flight.
const AT_ONCE: usize = 32;
const RESOURCE: &str = "https://api.example/mcp";

fn main() {
    let is_quick = std::env::args().any(|it| it == "--quick");
    let (short, long, calls) = if is_quick {
        (100, 5, 20)
    } else {
        (600, 120, 100)
    };
    check_alone(short);
    whole_calls(short);
    over_sockets(long, calls);
}

/// A token of 800 characters, as those of identity providers are.
fn opaque() -> String {
    "eyJhbGciOiJSUzI1NiJ9".repeat(40)
}

fn print(rows: &[mcpbolt_benches::harness::Row]) {
    for row in rows {
        println!(
            "{:>8.0} ns  {}: {}",
            row.median_ns, row.class, row.contender
        );
    }
}

/// The check of a token that is known: the header is read, and its digest looked up.
fn check_alone(rounds: usize) {
    let header = format!("Bearer {}", opaque());
    let digester = TokenDigester::new().unwrap();
    let mut cache = TokenCache::default();
    for other in 0..1000 {
        let digest = digester.digest(&format!("{other}")).unwrap();
        cache.insert(digest, Principal::new("bob"), u64::MAX);
    }
    let who = Principal::new("alice").with_scopes(["read"]);
    cache.insert(digester.digest(&opaque()).unwrap(), who, u64::MAX);
    let mut check = || {
        let presented = PresentedToken::read([black_box(header.as_bytes())]).ok()?;
        let digest = digester.digest(presented.token).ok()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        cache.find(&digest, now)
    };
    assert_eq!(check(), Some(Principal::new("alice")));
    let bytes = header.len();
    print(&measure(
        "a token",
        bytes,
        1,
        rounds,
        &mut [Contender::new("the check of one that is known", check)],
    ));
}

/// Calls through the service, without sockets.
fn whole_calls(rounds: usize) {
    let verify = |credentials: &Credentials<'_>| match credentials {
        Credentials::Bearer(_) => Ok(Principal::new("alice").with_expiry(u64::MAX)),
        _ => Err("a token is needed"),
    };
    let resource = ResourceServer::new(RESOURCE).issuer("https://login.example");
    let resource = resource
        .cached_for(Duration::from_secs(3600))
        .build()
        .unwrap();
    let header = || Some(format!("Bearer {}", opaque()));
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let bare = HttpCaller::open(revision);
        let ignored = HttpCaller::with(revision, None, header());
        let policy = HttpCaller::with(revision, Some(Policy::new()), header());
        let verifier = HttpCaller::with(revision, Some(Policy::new().verifier(verify)), header());
        let cached = Policy::new().verifier(verify).resource(resource.clone());
        let cached = HttpCaller::with(revision, Some(cached), header());
        print(&measure(
            revision.name(),
            0,
            1,
            rounds,
            &mut [
                Contender::new("a call", || bare.call()),
                Contender::new("with a token that is ignored", || ignored.call()),
                Contender::new("and a policy", || policy.call()),
                Contender::new("with a token that a function verifies", || verifier.call()),
                Contender::new("with a token that is known", || cached.call()),
            ],
        ));
    }
}

fn part(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// A key for ES256, of an issuer or of a client.
struct Key {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl Key {
    fn new() -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self { pair, random }
    }

    /// The members of the public key, in the order of its thumbprint (RFC 7638).
    fn jwk(&self) -> String {
        let point = &self.pair.public_key().as_ref()[1..];
        let (x, y) = (part(&point[..32]), part(&point[32..]));
        format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#)
    }

    fn signed(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).unwrap();
        format!("{signed}.{}", part(signature))
    }
}

/// Serves the keys of an issuer, and returns its URL.
fn issuer(key: &Key) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let body = format!(r#"{{"keys":[{}]}}"#, key.jwk());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let len = body.len();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    url
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

/// A server on a thread of its own.
struct Site {
    at: SocketAddr,
    /// Where the system says how long the thread has run.
    ran: PathBuf,
}

impl Site {
    /// `work` is done in each call.
    fn open(policy: Option<Policy>, work: fn()) -> Self {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let task = PathBuf::from("/proc").join(fs::read_link("/proc/thread-self").unwrap());
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let server = Server::builder("echo", "1");
            let server = match policy {
                Some(policy) => server.policy(policy),
                None => server,
            };
            let server = server.inline_tool(Tool::new("echo"), move |echo: Echo| {
                work();
                echo.text
            });
            let server = server.build().unwrap();
            runtime.block_on(async move {
                let address = "127.0.0.1:0";
                let http = HttpServer::bind(&server, address, HttpOptions::default()).await;
                let http = http.unwrap();
                tell.send((http.local_addr().unwrap(), task)).unwrap();
                http.run(std::future::pending()).await;
            });
        });
        let (at, task) = told.recv().unwrap();
        let ran = task.join("schedstat");
        Self { at, ran }
    }

    fn ran(&self) -> Duration {
        let text = fs::read_to_string(&self.ran).unwrap();
        let ran = text.split(' ').next().and_then(|it| it.parse().ok());
        Duration::from_nanos(ran.unwrap())
    }
}

/// One way to call: the server, and the headers of each call.
struct Way<'a> {
    name: &'static str,
    site: Site,
    headers: Box<dyn Fn() -> String + 'a>,
    connections: Vec<TcpStream>,
    took: Vec<f64>,
}

impl<'a> Way<'a> {
    fn open(
        name: &'static str,
        policy: Option<Policy>,
        work: fn(),
        headers: Box<dyn Fn() -> String + 'a>,
    ) -> Self {
        Self {
            name,
            site: Site::open(policy, work),
            headers,
            connections: Vec::new(),
            took: Vec::new(),
        }
    }

    /// Makes `calls` calls on each connection; the server's time of each in ns.
    async fn round(&mut self, calls: usize) -> f64 {
        let requests: Vec<Vec<_>> = self
            .connections
            .iter()
            .map(|_| (0..calls).map(|_| request(&(self.headers)())).collect())
            .collect();
        let before = self.site.ran();
        let connections = self.connections.drain(..).zip(requests);
        let running: Vec<_> = connections
            .map(|(stream, requests)| tokio::spawn(call(stream, requests)))
            .collect();
        for one in running {
            self.connections.push(one.await.unwrap());
        }
        let took = self.site.ran() - before;
        took.as_secs_f64() * 1e9 / (calls * AT_ONCE) as f64
    }
}

fn request(headers: &str) -> String {
    let of = "io.modelcontextprotocol";
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hello, world"}},"_meta":{{"{of}/clientInfo":{{"name":"b","version":"1"}},"{of}/protocolVersion":"2026-07-28","{of}/clientCapabilities":{{}}}}}}}}"#
    );
    format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends requests, each when the one before is answered.
async fn call(mut stream: TcpStream, requests: Vec<String>) -> TcpStream {
    let mut answer = Vec::with_capacity(4096);
    for request in requests {
        stream.write_all(request.as_bytes()).await.unwrap();
        answer.clear();
        while !answer.ends_with(b"}") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
        let text = str::from_utf8(&answer).unwrap();
        let is_right = text.starts_with("HTTP/1.1 200") && text.contains("hello, world");
        assert!(is_right, "{text}");
    }
    stream
}

/// Calls over sockets, 32 in flight.
fn over_sockets(rounds: usize, calls: usize) {
    let (of_issuer, of_client) = (Key::new(), Key::new());
    let issuer = issuer(&of_issuer);
    let thumbprint = part(digest(&SHA256, of_client.jwk().as_bytes()));
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let token = |cnf: &str| {
        let claims = format!(
            r#"{{"iss":"{issuer}","aud":"{RESOURCE}","sub":"alice","exp":{},"scope":"read write"{cnf},"more":"{}"}}"#,
            now + 3600,
            "x".repeat(300)
        );
        of_issuer.signed(r#"{"alg":"ES256","typ":"at+jwt"}"#, &claims)
    };
    let (bearer, bound) = (
        token(""),
        token(&format!(r#","cnf":{{"jkt":"{thumbprint}"}}"#)),
    );
    let ath = part(digest(&SHA256, bound.as_bytes()));
    let header = format!(
        r#"{{"typ":"dpop+jwt","alg":"ES256","jwk":{}}}"#,
        of_client.jwk()
    );
    let next = std::cell::Cell::new(0);
    let proof = || {
        next.set(next.get() + 1);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let claims = format!(
            r#"{{"jti":"proof-number-{}","htm":"POST","htu":"{RESOURCE}","iat":{now},"ath":"{ath}"}}"#,
            next.get()
        );
        of_client.signed(&header, &claims)
    };
    let policy = || {
        let resource = ResourceServer::new(RESOURCE)
            .issuer(&issuer)
            .jwks(format!("{issuer}/jwks"));
        let resource = resource.proofs(ProofUse::Accepted).scopes(["read"]);
        Some(Policy::new().resource(resource.build().unwrap()))
    };
    let authorization = format!("authorization: Bearer {bearer}\r\n");
    let bearer = || -> Box<dyn Fn() -> String + '_> { Box::new(|| authorization.clone()) };
    let mut ways = [
        Way::open("without a token", None, || (), Box::new(String::new)),
        Way::open("with a JWT", policy(), || (), bearer()),
        Way::open("with a JWT and ES256", policy(), verify, bearer()),
        Way::open(
            "with a JWT and proofs",
            policy(),
            || (),
            Box::new(|| format!("authorization: DPoP {bound}\r\ndpop: {}\r\n", proof())),
        ),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.unwrap();
    runtime.block_on(async {
        for way in &mut ways {
            for _ in 0..AT_ONCE {
                let stream = TcpStream::connect(way.site.at).await.unwrap();
                stream.set_nodelay(true).unwrap();
                way.connections.push(stream);
            }
            // The keys are fetched, and the server is warm.
            way.round(calls).await;
        }
        for _ in 0..rounds {
            for way in &mut ways {
                let took = way.round(calls).await;
                way.took.push(took);
            }
        }
    });
    let [plain, jwt, verifying, dpop] = ways.map(|way| {
        let took = median(way.took.clone());
        println!("{took:>8.0} ns  {AT_ONCE} in flight: a call {}", way.name);
        way.took
    });
    let ratio = jwt.iter().zip(&plain).map(|(jwt, plain)| jwt / plain);
    println!(
        "with a JWT: {} times the call without",
        interval(ratio.collect())
    );
    let rounds = jwt.iter().zip(&verifying).zip(&dpop);
    let more = rounds.map(|((jwt, verifying), dpop)| (dpop - jwt) / (verifying - jwt));
    println!(
        "a proof: {} verifications of ES256",
        interval(more.collect())
    );
}

/// Verifies a signature: what a proof costs at least. It is done in calls, so that caches and wake-ups are those of
/// calls with proofs.
fn verify() {
    static SIGNED: LazyLock<(Vec<u8>, String, Vec<u8>)> = LazyLock::new(|| {
        let key = Key::new();
        let proof = key.signed("a header as long as that of a proof", &"x".repeat(400));
        let (signed, signature) = proof.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = key.pair.public_key().as_ref().to_vec();
        (public, signed.to_owned(), signature)
    });
    let (public, signed, signature) = &*SIGNED;
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public);
    key.verify(black_box(signed.as_bytes()), signature).unwrap();
}
