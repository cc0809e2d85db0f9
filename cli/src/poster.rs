//! Posts what is exported over HTTP, on a runtime of its own: the threads that export have none.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The most that is read of an answer.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// How long a collector may take, unless the exporter gives up before.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client that keeps connections; a clone shares them.
#[derive(Clone, Debug)]
pub struct Poster {
    runtime: Handle,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Poster {
    /// Posts on that runtime. If it `is_secure`, also to `https`, by the certificates that this system trusts; else none
    /// are read, so that there need not be any.
    ///
    /// # Errors
    /// If there is no TLS to be had.
    pub fn new(runtime: Handle, is_secure: bool) -> Result<Self> {
        // There may be one already.
        let _ = ring::default_provider().install_default();
        let tls = match is_secure {
            true => ClientConfig::with_platform_verifier()
                .context("https takes the certificates that this system trusts")?,
            false => ClientConfig::builder()
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth(),
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { runtime, client })
    }
}

type Posting<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Poster {
    fn send_bytes<'s, 'a>(&'s self, request: Request<Bytes>) -> Posting<'a>
    where
        's: 'a,
        Self: 'a,
    {
        let client = self.client.clone();
        let posting = async move {
            let answer = client.request(request.map(Full::new)).await?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        // The clock of the time-out is that of the runtime.
        let posting = self
            .runtime
            .spawn(async move { timeout(PATIENCE, posting).await });
        Box::pin(async move { posting.await?? })
    }
}
