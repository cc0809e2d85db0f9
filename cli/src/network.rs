//! The way to a server on the network.

use std::path::PathBuf;

use anyhow::{Context, Result};
use mcpbolt::io::http::{HttpClientOptions, Proxy};

/// How requests reach servers on the network.
#[derive(Clone, clap::Args)]
pub struct Network {
    /// A file of certificate authorities (PEM) to trust in addition to the system's; may be given several
    /// times
    #[arg(long, value_name = "FILE")]
    ca: Vec<PathBuf>,
    /// The proxy for HTTP, or "none"; without it, that of HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
}

impl Network {
    /// Options of a client on HTTP.
    pub fn options(&self) -> Result<HttpClientOptions> {
        Ok(HttpClientOptions {
            proxy: self.proxy(),
            root_certificates: self.certificates()?,
            ..HttpClientOptions::default()
        })
    }

    /// The further certificates, in PEM.
    pub fn certificates(&self) -> Result<Vec<Vec<u8>>> {
        let read = |file: &PathBuf| {
            std::fs::read(file)
                .with_context(|| format!("reading certificates from {}", file.display()))
        };
        self.ca.iter().map(read).collect()
    }

    fn proxy(&self) -> Proxy {
        match self.proxy.as_deref() {
            None => Proxy::Environment,
            Some("none") => Proxy::None,
            Some(url) => Proxy::At(url.to_owned()),
        }
    }
}
