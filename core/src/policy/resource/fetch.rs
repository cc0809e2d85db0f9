//! What a resource server needs of the drivers: documents of its issuers.

use std::fmt::{self, Debug};
use std::future::Future;
use std::io;
use std::pin::Pin;

/// A document, or why there is none. The reason contains no URL.
pub type IssuerFetched<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + 'a>>;

/// Asks authorization servers. It follows no redirects, waits a limited time and reads limited documents.
pub trait IssuerFetch: Debug + Send + Sync {
    /// The document at a URL.
    fn get<'a>(&'a self, url: &'a str) -> IssuerFetched<'a>;

    /// The answer to a form.
    fn post<'a>(
        &'a self,
        url: &'a str,
        authorization: Option<String>,
        form: String,
    ) -> IssuerFetched<'a>;

    /// Runs a task that fetches, apart from the request that needs it, which may end before.
    ///
    /// # Errors
    /// When no thread can be started.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) -> io::Result<()>;
}

/// How issuers are reached. `Debug` omits the proxy, whose URL may hold a password.
#[derive(Clone, Default)]
pub struct FetchOptions {
    /// Certificates in PEM that are trusted in addition to those of the system.
    pub root_certificates: Vec<Vec<u8>>,
    /// The URL of a proxy; empty for none. `None` stands for the one that the environment names.
    pub proxy: Option<String>,
}

impl Debug for FetchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchOptions")
            .field("has_proxy", &self.proxy.is_some())
            .finish_non_exhaustive()
    }
}
