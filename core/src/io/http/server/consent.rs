//! A [`ConsentProxy`] beside the endpoint: its paths, and its questions to the identity provider.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Buf as _, Bytes};
use http_body::Body;
use hyper::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use mcpbolt_oauth::proxy::{
    ConsentProxy, Fetch, FetchRequest, FetchResponse, Fetched, ProxyReply, ProxyRequest,
};
use tokio::time::timeout;
use url::Url;

use super::body::HttpBody;
use crate::error::{CarrierError, CarrierFault};
use crate::io::http::client::{HttpClientOptions, HttpConnections, connections_by, read_body, uri};

/// How long the identity provider may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest answer of the identity provider that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 256 << 10;
/// How long the body of a request may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers the requests of clients and browsers to a consent proxy.
pub struct ConsentEndpoint {
    proxy: Arc<ConsentProxy>,
    provider: Arc<IdentityProvider>,
}

impl ConsentEndpoint {
    /// # Errors
    /// When there can be no HTTP client.
    pub fn new(proxy: Arc<ConsentProxy>) -> io::Result<Self> {
        let provider = Arc::new(IdentityProvider::new()?);
        Ok(Self { proxy, provider })
    }

    pub fn serves(&self, path: &str) -> bool {
        self.proxy.serves(path)
    }

    pub async fn respond<B: Body>(&self, parts: &Parts, body: B) -> Response<HttpBody> {
        let body = match timeout(BODY_TIMEOUT, read(body)).await {
            Ok(Some(body)) => body,
            Ok(None) => return response(StatusCode::PAYLOAD_TOO_LARGE, Bytes::new()),
            Err(_) => return response(StatusCode::REQUEST_TIMEOUT, Bytes::new()),
        };
        let presence = Presence(Arc::default());
        let asked = self.answer(parts.clone(), body, presence.0.clone());
        match tokio::spawn(asked).await {
            Ok(reply) => written(reply),
            Err(_) => response(StatusCode::INTERNAL_SERVER_ERROR, Bytes::new()),
        }
    }

    /// The answer to a request. It owns what it needs, since it goes on when the client leaves: the provider's
    /// tokens may be good once, and a login must not end between two of them. The proxy keeps them for that client.
    fn answer(
        &self,
        parts: Parts,
        body: Vec<u8>,
        left: Arc<AtomicBool>,
    ) -> impl Future<Output = ProxyReply> + Send + 'static {
        let (proxy, provider) = (self.proxy.clone(), self.provider.clone());
        async move {
            let text = |name: HeaderName| parts.headers.get(name).and_then(|it| it.to_str().ok());
            let cookies = cookies(&parts.headers);
            let mut request = ProxyRequest::new(
                parts.method.as_str(),
                parts.uri.path(),
                parts.uri.query().unwrap_or_default(),
            );
            request.cookies = &cookies;
            request.origin = text(ORIGIN);
            request.fetch_site = text(HeaderName::from_static("sec-fetch-site"));
            request.content_type = text(CONTENT_TYPE).unwrap_or_default();
            request.body = &body;
            request.left = Some(&left);
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.map_or(0, |since| since.as_secs());
            proxy.handle(&request, now, &*provider).await
        }
    }
}

/// Says that the client has left, when it is dropped before the response.
struct Presence(Arc<AtomicBool>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A whole body; `None` if it is too long or breaks off.
async fn read<B: Body>(body: B) -> Option<Vec<u8>> {
    let mut body = pin!(body);
    let mut whole = Vec::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        if let Ok(mut piece) = frame.ok()?.into_data() {
            if piece.remaining() > ProxyRequest::MAX_BODY_BYTES - whole.len() {
                return None;
            }
            while piece.has_remaining() {
                let part = piece.chunk();
                let len = part.len();
                whole.extend_from_slice(part);
                piece.advance(len);
            }
        }
    }
    Some(whole)
}

/// The cookies of a request: HTTP/2 sends each in a header of its own.
fn cookies(headers: &HeaderMap) -> String {
    let all = headers.get_all(COOKIE).iter();
    let all: Vec<_> = all.filter_map(|value| value.to_str().ok()).collect();
    all.join("; ")
}

fn written(reply: ProxyReply) -> Response<HttpBody> {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = response(status, reply.body.into());
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            response
                .headers_mut()
                .append(HeaderName::from_static(name), value);
        }
    }
    response
}

fn response(status: StatusCode, text: Bytes) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::text(text));
    *response.status_mut() = status;
    response
}

/// Asks the identity provider.
struct IdentityProvider(HttpConnections);

impl IdentityProvider {
    fn new() -> io::Result<Self> {
        connections_by(&HttpClientOptions::default()).map(Self)
    }

    async fn ask(&self, request: FetchRequest) -> Result<FetchResponse, CarrierError> {
        let wrong = |why: &str| CarrierError::new(CarrierFault::Unreachable, why);
        let method = Method::from_bytes(request.method.as_bytes()).unwrap_or(Method::POST);
        let url = Url::parse(&request.url).map_err(|_| wrong("the URL is malformed"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers {
            let name = HeaderName::try_from(name).map_err(|_| wrong("no name of a header"))?;
            let value = HeaderValue::try_from(value);
            let value = value.map_err(|_| wrong("a value that no header may have"))?;
            headers.append(name, value);
        }
        let sent = self
            .0
            .send(method, uri(&url)?, headers, request.body.into());
        let mut response = sent.await?;
        let body = read_body(&mut response, MAX_ANSWER_BYTES).await?;
        Ok(FetchResponse {
            status: response.status().as_u16(),
            body: body.concat(),
        })
    }
}

impl Fetch for IdentityProvider {
    fn fetch(&self, request: FetchRequest) -> Fetched<'_> {
        Box::pin(async move {
            let asked = timeout(ANSWER_TIMEOUT, self.ask(request)).await;
            let asked = asked.map_err(|_| format!("no answer within {ANSWER_TIMEOUT:?}"))?;
            asked.map_err(|error| error.to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};
    use hyper::Request;
    use mcpbolt_oauth::jwk::sha256_base64url;
    use mcpbolt_oauth::proxy::{ConsentProxyOptions, Upstream};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::Notify;

    use super::*;

    fn endpoint() -> ConsentEndpoint {
        before("https://login.example/t")
    }

    /// The proxy before an identity provider with that token endpoint.
    fn before(token_endpoint: &str) -> ConsentEndpoint {
        let upstream = Upstream::new("https://login.example/a", token_endpoint, "one");
        let (issuer, resource) = ("https://api.example", "https://api.example/mcp");
        let options = ConsentProxyOptions::new(issuer, resource, upstream);
        let proxy = ConsentProxy::new(options, &[7; 32]).unwrap();
        ConsentEndpoint::new(Arc::new(proxy)).unwrap()
    }

    #[tokio::test]
    async fn requests_are_answered_up_to_a_size() {
        let register = |len| {
            let uri = format!(
                "{{\"redirect_uris\":[\"https://a.example\"],\"x\":\"{}\"}}",
                "x".repeat(len)
            );
            Request::post("/register")
                .body(Full::new(Bytes::from(uri)))
                .unwrap()
        };
        for (len, status) in [(10, 201), (ProxyRequest::MAX_BODY_BYTES, 413)] {
            let (parts, body) = register(len).into_parts();
            let response = endpoint().respond(&parts, body).await;
            assert_eq!(response.status(), status);
        }
        let request = Request::get("/.well-known/oauth-authorization-server");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let response = endpoint().respond(&parts, Full::<Bytes>::default()).await;
        assert_eq!(response.headers()["access-control-allow-origin"], "*");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(body.starts_with(b"{\"authorization_endpoint\":"));
    }

    /// The answer to a request: its text, after the address that it leads to and the cookie that it sets.
    async fn told(endpoint: &ConsentEndpoint, place: &str, cookie: &str, form: &str) -> String {
        let request = match form {
            "" => Request::get(place),
            _ => Request::post(place).header("content-type", "application/x-www-form-urlencoded"),
        };
        let request = request.header("cookie", cookie);
        let body = Full::new(Bytes::from(form.to_owned()));
        let (parts, body) = request.body(body).unwrap().into_parts();
        let response = endpoint.respond(&parts, body).await;
        let header = |name| response.headers().get(name).map(|it| it.to_str().unwrap());
        let head = ["location", "set-cookie"].map(|name| header(name).unwrap_or_default());
        let head = head.join("\n");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        format!("{head}\n{}", str::from_utf8(&body).unwrap())
    }

    fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
        let (_, rest) = text.split_once(before).unwrap();
        rest.split_once(after).map_or(rest, |(found, _)| found)
    }

    /// R-AUC-17: its connection ends while the identity provider is asked; the provider's tokens are not lost.
    #[tokio::test]
    async fn a_client_that_leaves_gets_its_tokens_when_it_asks_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/token", listener.local_addr().unwrap());
        let (asked, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (is_asked, may_answer) = (asked.clone(), go.clone());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            while !head.windows(10).any(|it| it == b"grant_type") {
                let _ = stream.read(&mut head).await.unwrap();
            }
            is_asked.notify_one();
            may_answer.notified().await;
            let tokens = r#"{"access_token":"upstream","token_type":"Bearer"}"#;
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
                tokens.len()
            );
            stream.write_all((head + tokens).as_bytes()).await.unwrap();
        });
        let endpoint = before(&url);
        let registration = r#"{"redirect_uris":["https://a.example"]}"#;
        let client = told(&endpoint, "/register", "", registration).await;
        let client = between(&client, "\"client_id\":\"", "\"");
        let verifier = "a-verifier-of-a-client-that-is-long-enough-to-be-one";
        let challenge = sha256_base64url(verifier.as_bytes());
        let place = format!(
            "/authorize?response_type=code&client_id={client}&code_challenge_method=S256&code_challenge={challenge}"
        );
        let page = told(&endpoint, &place, "", "").await;
        let cookie = |text: &str| {
            text.lines()
                .nth(1)
                .unwrap()
                .split(';')
                .next()
                .unwrap()
                .to_owned()
        };
        let sealed = between(&page, "name=\"request\" value=\"", "\"");
        let consent = format!("request={sealed}&answer=allow");
        let login = told(&endpoint, "/consent", &cookie(&page), &consent).await;
        let place = format!("/callback?code=c&state={}", between(&login, "&state=", "&"));
        let login_cookie = login.lines().nth(1).unwrap();
        let back = told(
            &endpoint,
            &place,
            login_cookie.split(';').next().unwrap(),
            "",
        )
        .await;
        let code = between(&back, "code=", "&");
        let form = format!(
            "grant_type=authorization_code&code={code}&client_id={client}&code_verifier={verifier}"
        );
        tokio::select! {
            answer = told(&endpoint, "/token", "", &form) => panic!("{answer}"),
            () = asked.notified() => {}
        }
        let early = told(&endpoint, "/token", "", &form).await;
        assert!(early.contains("temporarily_unavailable"), "{early}");
        go.notify_one();
        let late = loop {
            let late = told(&endpoint, "/token", "", &form).await;
            if !late.contains("temporarily_unavailable") {
                break late;
            }
            tokio::task::yield_now().await;
        };
        assert!(late.contains("\"access_token\":\""), "{late}");
        let again = told(&endpoint, "/token", "", &form).await;
        assert!(again.contains("invalid_grant"), "{again}");
    }

    #[tokio::test]
    async fn an_identity_provider_is_read_up_to_a_size_and_leads_nowhere() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/token", listener.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 4096];
                let len = stream.read(&mut head).await.unwrap();
                let answer = match head[..len].ends_with(b"long") {
                    true => format!(
                        "200 OK\r\ncontent-length: 300000\r\n\r\n{}",
                        "x".repeat(300_000)
                    ),
                    false => "302 Found\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n"
                        .into(),
                };
                let _ = stream
                    .write_all(format!("HTTP/1.1 {answer}").as_bytes())
                    .await;
            }
        });
        let provider = IdentityProvider::new().unwrap();
        let ask = |body: &str| provider.fetch(FetchRequest::post(url.clone(), body.to_owned()));
        let long = ask("long").await.unwrap_err();
        assert!(long.contains("longer than allowed"), "{long}");
        assert_eq!(ask("other").await.unwrap().status, 302);
        let nowhere = FetchRequest::post("http://127.0.0.1:9/secret".into(), String::new());
        let why = provider.fetch(nowhere).await.unwrap_err();
        assert!(!why.contains("secret"), "{why}");
    }
}
