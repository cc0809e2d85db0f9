//! Where the user's browser comes back to after a login: a small server on this machine.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use url::Url;

use crate::io::runtime::runtime;
use crate::sync::lock;

const PATH: &str = "/callback";
/// Connections at a time. Browsers open several, and send requests on few.
const MAX_CONNECTIONS: usize = 16;
/// How long a connection may last.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 30 });
/// Longest head of a request. A login's answer has a code, a state and an issuer.
const MAX_HEAD_BYTES: usize = 32 << 10;

/// An address on this machine, for this program alone, that the authorization server sends the user's
/// browser back to (RFC 8252, section 7.3).
///
/// ```no_run
/// # async fn login(authorization_url: String, state: &str) -> std::io::Result<()> {
/// use mcpbolt::io::login::{Callback, open_browser};
/// let callback = Callback::bind()?;
/// println!("redirect_uri={}", callback.redirect_uri());
/// open_browser(&authorization_url)?;
/// let answer = callback.wait(state).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Callback {
    listener: TcpListener,
    redirect_uri: String,
}

impl Callback {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be opened.
    pub fn bind() -> io::Result<Self> {
        Self::bind_port(0)
    }

    /// Listens at a redirect URI of an earlier login, with which the client is registered.
    ///
    /// # Errors
    /// When it is not one of this type, or its port is in use.
    pub fn bind_again(redirect_uri: &str) -> io::Result<Self> {
        let port = redirect_uri
            .strip_prefix("http://127.0.0.1:")
            .and_then(|rest| rest.strip_suffix(PATH))
            .and_then(|port| port.parse().ok());
        Self::bind_port(port.ok_or(io::ErrorKind::InvalidInput)?)
    }

    fn bind_port(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Self {
            listener,
            redirect_uri: format!("http://127.0.0.1:{port}{PATH}"),
        })
    }

    /// The redirect URI to register and to ask with.
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Waits for the browser, as long as it takes, and returns the URL that it was sent to. The answer may
    /// be a refusal; its `iss` is not checked. Any request without this `state` is refused and changes
    /// nothing, so no other page can end the login. Dropping the future closes the address.
    ///
    /// # Errors
    /// When the network of this machine fails.
    pub async fn wait(self, state: &str) -> io::Result<String> {
        let (sender, mut answers) = mpsc::channel(1);
        let server = Server {
            redirect_uri: self.redirect_uri,
            state: state.to_owned(),
            answers: sender,
        };
        let mut serving = Serving(runtime()?.spawn(server.serve(self.listener)));
        tokio::select! {
            answer = answers.recv() => answer.ok_or_else(|| io::Error::other("the callback's server ended")),
            ended = &mut serving.0 => match ended {
                Ok(Err(error)) => Err(error),
                _ => Err(io::Error::other("the callback's server ended")),
            },
        }
    }
}

/// The task that serves; it ends with the future that waits.
struct Serving(JoinHandle<io::Result<()>>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Clone)]
struct Server {
    redirect_uri: String,
    state: String,
    answers: mpsc::Sender<String>,
}

impl Server {
    async fn serve(self, listener: TcpListener) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut connections = JoinSet::new();
        loop {
            while connections.len() >= MAX_CONNECTIONS {
                connections.join_next().await;
            }
            while connections.try_join_next().is_some() {}
            let (stream, _) = listener.accept().await?;
            let server = self.clone();
            connections.spawn(async move {
                let answer = Mutex::new(None);
                let respond = service_fn(|request| {
                    let (page, url) = server.respond(&request);
                    if let Some(url) = url {
                        *lock(&answer) = Some(url);
                    }
                    ready(Ok::<_, Infallible>(page))
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .keep_alive(false)
                    .max_buf_size(MAX_HEAD_BYTES)
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), respond);
                // A broken connection is the browser's business.
                let _ = timeout(CONNECTION_TIMEOUT, connection).await;
                // Only now: this ends the server, and the browser has its page.
                if let Some(url) = lock(&answer).take() {
                    let _ = server.answers.try_send(url);
                }
            });
        }
    }

    /// The page for a request, and its URL if that is the answer.
    fn respond<B>(&self, request: &Request<B>) -> (Response<Full<Bytes>>, Option<String>) {
        let refuse = |status, sentence| (page(status, sentence), None);
        let origin = self.redirect_uri.trim_end_matches(PATH);
        let url = format!("{origin}{}", request.uri());
        let parsed = Url::parse(&url).ok().filter(|url| url.path() == PATH);
        let Some(parsed) = parsed.filter(|_| request.uri().authority().is_none()) else {
            return refuse(StatusCode::NOT_FOUND, "There is no such page.");
        };
        if request.method() != Method::GET {
            let why = "Only a browser's GET is answered here.";
            return refuse(StatusCode::METHOD_NOT_ALLOWED, why);
        }
        let values = |name: &'static str| {
            let pairs = parsed.query_pairs().filter(move |(key, _)| key == name);
            pairs.map(|(_, value)| value).collect::<Vec<_>>()
        };
        if values("state") != [&*self.state] {
            let why = "This page belongs to no login that is waiting. Start the login again.";
            return refuse(StatusCode::BAD_REQUEST, why);
        }
        let sentence = match values("error").is_empty() {
            true => "Done. You can close this page and go back to the program.",
            false => "The login was refused. Go back to the program, which says why.",
        };
        (page(StatusCode::OK, sentence), Some(url))
    }
}

/// A page that says one sentence, and nothing that came with the request.
fn page(status: StatusCode, sentence: &'static str) -> Response<Full<Bytes>> {
    let text = format!("<!doctype html><meta charset=utf-8><title>Login</title><p>{sentence}\n");
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::*;
    use crate::client::block_on;

    /// Sends a request, and returns the answer, or the error if there is no listener.
    fn ask(callback: &str, request: &str) -> io::Result<String> {
        let url = Url::parse(callback).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", url.port().unwrap()))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn get(target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    }

    /// Requests with another state neither end the login nor reach it.
    #[test]
    fn only_the_answer_with_the_state_counts() {
        let callback = Callback::bind().unwrap();
        let uri = callback.redirect_uri().to_owned();
        let waiting = std::thread::spawn(move || block_on(callback.wait("a b+c")));
        // A browser opens connections before it needs them.
        let idle: Vec<_> = (0..MAX_CONNECTIONS - 1)
            .map(|_| TcpStream::connect(uri.trim_start_matches("http://").trim_end_matches(PATH)))
            .collect();
        let fit = "/callback?code=x&state=a+b%2Bc&iss=https%3A%2F%2Fas";
        let refused = [
            (get("/"), "404"),
            (get("/favicon.ico"), "404"),
            (get(&fit.replace("callback", "callbacks")), "404"),
            (get(&format!("http://evil.example{fit}")), "404"),
            (get("/callback"), "400"),
            (get("/callback?code=x&state=other"), "400"),
            (get("/callback?code=x&state=a%20b"), "400"),
            (get("/callback?error=x&state="), "400"),
            (get(&format!("{fit}&state=other")), "400"),
            (get(fit).replace("GET", "POST"), "405"),
            ("nonsense\r\n\r\n".to_owned(), "400"),
        ];
        for (request, status) in refused {
            let answer = ask(&uri, &request).unwrap();
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{request}: {answer}"
            );
            assert!(
                !answer.contains("other") && !answer.contains("code="),
                "{answer}"
            );
        }
        assert!(!waiting.is_finished());
        let answer = ask(&uri, &get(fit)).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("Done."),
            "{answer}"
        );
        let url = waiting.join().unwrap().unwrap();
        assert_eq!(url, uri.replace("/callback", fit));
        drop(idle);
    }

    #[test]
    fn connections_are_bounded_in_number_and_requests_in_length() {
        let callback = Callback::bind().unwrap();
        let uri = callback.redirect_uri().to_owned();
        let waiting = std::thread::spawn(move || block_on(callback.wait("s")));
        let long = format!(
            "GET / HTTP/1.1\r\nX: {}\r\n\r\n",
            "x".repeat(2 * MAX_HEAD_BYTES)
        );
        if let Ok(answer) = ask(&uri, &long) {
            assert!(!answer.starts_with("HTTP/1.1 404"), "{answer}");
        }
        let place = uri.trim_start_matches("http://").trim_end_matches(PATH);
        let idle: Vec<_> = (0..2 * MAX_CONNECTIONS)
            .map(|_| TcpStream::connect(place).unwrap())
            .collect();
        // Who is silent gives way after a time.
        ask(&uri, &get("/callback?code=x&state=s")).unwrap();
        assert!(waiting.join().unwrap().is_ok());
        drop(idle);
    }

    #[test]
    fn a_refusal_is_an_answer_and_the_address_closes() {
        let callback = Callback::bind().unwrap();
        let uri = callback.redirect_uri().to_owned();
        let waiting = std::thread::spawn(move || block_on(callback.wait("s")));
        let answer = ask(&uri, &get("/callback?error=access_denied&state=s")).unwrap();
        assert!(answer.contains("refused"), "{answer}");
        assert!(
            waiting
                .join()
                .unwrap()
                .unwrap()
                .ends_with("error=access_denied&state=s")
        );
        // The task ends soon after its future.
        while ask(&uri, &get("/")).is_ok() {
            std::thread::yield_now();
        }
    }
}
