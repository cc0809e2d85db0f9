//! Small documents of authorization servers: keys, and answers about tokens.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::time::timeout;
use url::Url;

use super::client::{HttpClientOptions, HttpConnections, Proxy, connections_by, read_body, uri};
use crate::error::CarrierError;
use crate::io::runtime::runtime;
use crate::policy::{IssuerFetch, IssuerFetched, Policy};

/// How long a server may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);

/// Longest document that is read, in bytes.
const MAX_DOCUMENT_BYTES: usize = 512 << 10;

/// Lets the resource server of a policy, if there is one, ask its issuers.
///
/// # Errors
/// When a root certificate or the proxy is not valid.
pub fn connect_issuers(policy: Option<&Policy>) -> io::Result<()> {
    let Some(resource) = policy.and_then(Policy::resource_server) else {
        return Ok(());
    };
    resource.connect(|options| {
        let options = HttpClientOptions {
            root_certificates: options.root_certificates.clone(),
            proxy: match &options.proxy {
                None => Proxy::Environment,
                Some(url) if url.is_empty() => Proxy::None,
                Some(url) => Proxy::At(url.clone()),
            },
            ..HttpClientOptions::default()
        };
        Ok(Arc::new(Fetcher(connections_by(&options)?)))
    })
}

struct Fetcher(HttpConnections);

impl Fetcher {
    async fn read(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Vec<u8>, String> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let read = async {
            let sent = self.0.send(method, uri(url)?, headers, body);
            let mut response = sent.await?;
            let document = match response.status().as_u16() {
                200 => read_body(&mut response, MAX_DOCUMENT_BYTES).await?,
                _ => Vec::new(),
            };
            Ok((response.status(), document))
        };
        let read = timeout(ANSWER_TIMEOUT, read).await;
        let read = read.map_err(|_| format!("no answer within {ANSWER_TIMEOUT:?}"))?;
        let (status, document) = read.map_err(|error: CarrierError| error.to_string())?;
        if status != 200 {
            return Err(format!("the server answered with status {status}"));
        }
        Ok(document.concat())
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetcher")
    }
}

impl IssuerFetch for Fetcher {
    fn get<'a>(&'a self, url: &'a str) -> IssuerFetched<'a> {
        Box::pin(async move {
            let url = safe(url)?;
            let document = self.read(Method::GET, &url, HeaderMap::new(), Bytes::new());
            told(&url, document.await)
        })
    }

    fn post<'a>(
        &'a self,
        url: &'a str,
        authorization: Option<String>,
        form: String,
    ) -> IssuerFetched<'a> {
        const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
        Box::pin(async move {
            let url = safe(url)?;
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, FORM);
            if let Some(authorization) = authorization {
                let value = HeaderValue::try_from(authorization);
                let mut value = value.map_err(|_| "the client id or secret is not valid")?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            let document = self.read(Method::POST, &url, headers, form.into());
            told(&url, document.await)
        })
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) -> io::Result<()> {
        drop(runtime()?.spawn(task));
        Ok(())
    }
}

/// Reports a failure.
fn told(url: &Url, document: Result<Vec<u8>, String>) -> Result<Vec<u8>, String> {
    if let Err(why) = &document {
        event!(warn, host = url.host_str(), %why, "an authorization server did not answer");
        let _ = (url, why);
    }
    document
}

/// Refuses URLs over which documents could be changed on their way.
fn safe(url: &str) -> Result<Url, String> {
    if !mcpbolt_oauth::server::is_safe_url(url) {
        return Err("the URL must be one of https, or of this machine".into());
    }
    let url = Url::parse(url).map_err(|_| "the URL is malformed")?;
    match url.username().is_empty() && url.password().is_none() {
        true => Ok(url),
        false => Err("the URL must hold no name or password".into()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn documents_are_bounded_in_length() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 4096];
                let len = stream.read(&mut head).await.unwrap();
                let more = usize::from(head[..len].starts_with(b"GET /longer"));
                let body = "x".repeat(MAX_DOCUMENT_BYTES + more);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            }
        });
        let fetcher = Fetcher(connections_by(&HttpClientOptions::default()).unwrap());
        let longest = fetcher.get(&format!("{origin}/longest")).await.unwrap();
        assert_eq!(longest.len(), MAX_DOCUMENT_BYTES);
        let why = fetcher.get(&format!("{origin}/longer")).await.unwrap_err();
        assert_eq!(why, "the answer is longer than allowed");
        assert!(fetcher.get("http://login.example/keys").await.is_err());
    }
}
