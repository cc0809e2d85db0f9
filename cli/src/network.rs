//! The way to a server on the network.

use std::path::PathBuf;

use anyhow::{Context, Result};
use mcpbolt::io::http::{HttpClientOptions, Proxy};
use mcpbolt::io::{Address, Auth, ConnectOptions};

use crate::login;

/// How requests reach servers on the network.
#[derive(clap::Args)]
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

    /// Options of a connection to a server, with the user's login unless there are credentials.
    pub fn connecting(
        &self,
        address: &Address,
        auth: Auth,
        headers: Vec<(String, String)>,
    ) -> Result<ConnectOptions> {
        let is_authorization =
            |(name, _): &(String, String)| name.trim().eq_ignore_ascii_case("authorization");
        let has_credentials = auth != Auth::None || headers.iter().any(is_authorization);
        let has_login = matches!(address, Address::Http(_)) && !has_credentials;
        Ok(ConnectOptions {
            auth,
            headers,
            root_certificates: self.certificates()?,
            http: HttpClientOptions {
                authorization: has_login.then(login::stored).transpose()?,
                ..self.options()?
            },
            ..ConnectOptions::default()
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
