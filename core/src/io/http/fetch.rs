//! Small documents of servers that the program names: keys of issuers, and answers about tokens.

use std::future::Future;
use std::io;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, Url};

use super::client::{HttpClientOptions, http_client};
use crate::io::runtime::runtime;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(8);

/// Longest document that is read, in bytes.
const MAX_DOCUMENT_BYTES: usize = 512 << 10;

/// Fetches documents. It follows no redirects, and asks over HTTPS only, or servers of this machine.
#[derive(Clone, Debug)]
pub struct Fetcher(Client);

impl Fetcher {
    /// Creates a fetcher with the proxy, the roots and the certificate of `options`.
    ///
    /// # Errors
    /// When an option is not valid.
    pub fn new(options: &HttpClientOptions) -> io::Result<Self> {
        http_client(options).map(Self)
    }

    /// Checks that documents may be fetched from a URL.
    ///
    /// # Errors
    /// Why not.
    pub fn check(url: &str) -> Result<(), String> {
        safe(url).map(drop)
    }

    /// Runs a task that fetches, apart from the request that needs it, which may end before.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        drop(runtime()?.spawn(task));
        Ok(())
    }

    /// The document at a URL.
    ///
    /// # Errors
    /// Why there is none. The text contains no URL.
    pub async fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        let url = safe(url)?;
        told(&url, self.read(self.0.get(url.clone())).await)
    }

    /// The answer to a form.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn post(
        &self,
        url: &str,
        authorization: Option<String>,
        form: String,
    ) -> Result<Vec<u8>, String> {
        const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
        let url = safe(url)?;
        let mut request = self
            .0
            .post(url.clone())
            .header(CONTENT_TYPE, FORM)
            .body(form);
        if let Some(authorization) = authorization {
            let value = HeaderValue::try_from(authorization);
            let mut value = value.map_err(|_| "the client id or secret is not valid")?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        told(&url, self.read(request).await)
    }

    async fn read(&self, request: RequestBuilder) -> Result<Vec<u8>, String> {
        let failed = |error: reqwest::Error| error.without_url().to_string();
        let request = request.header(ACCEPT, "application/json").timeout(PATIENCE);
        let mut response = request.send().await.map_err(failed)?;
        if response.status() != 200 {
            return Err(format!(
                "the server answered with status {}",
                response.status()
            ));
        }
        let mut document = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if document.len() + piece.len() > MAX_DOCUMENT_BYTES {
                return Err("the document is too long".into());
            }
            document.extend_from_slice(&piece);
        }
        Ok(document)
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
    let url = Url::parse(url).map_err(|_| "the URL is malformed")?;
    match url.scheme() == "https" || url.scheme() == "http" && is_local(&url) {
        true => Ok(url),
        false => Err("the URL must be one of https, or of this machine".into()),
    }
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
