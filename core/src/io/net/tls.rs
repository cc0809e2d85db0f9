//! TLS of a server, with rustls and ring.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::io::faults::invalid;
use crate::io::net::serve::TlsOptions;

/// Accepts TLS connections.
#[derive(Clone)]
pub struct Acceptor {
    tls: TlsAcceptor,
    allowed: Duration,
}

impl Acceptor {
    /// Offers HTTP/2 and HTTP/1.1. If `options.clients` is set, clients must show a certificate issued
    /// by one of its roots. Each TLS handshake may take `allowed`.
    ///
    /// # Errors
    /// When a file cannot be read, or the key does not match the certificate.
    pub fn new(options: &TlsOptions, allowed: Duration) -> io::Result<Self> {
        let named = |error| invalid(format!("{}: {error}", options.key.display()));
        let key = PrivateKeyDer::from_pem_file(&options.key).map_err(named)?;
        let provider = Arc::new(default_provider());
        let clients = match &options.clients {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for root in certificates(path)? {
                    roots.add(root).map_err(invalid)?;
                }
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                    .build()
                    .map_err(invalid)?
            }
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_client_cert_verifier(clients)
            .with_single_cert(certificates(&options.certificate)?, key)
            .map_err(invalid)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let tls = TlsAcceptor::from(Arc::new(config));
        Ok(Self { tls, allowed })
    }

    /// Performs the TLS handshake.
    ///
    /// # Errors
    /// When the handshake fails, or takes too long.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        tokio::time::timeout(self.allowed, self.tls.accept(stream)).await?
    }
}

/// The certificates in a file.
fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let named = |error| invalid(format!("{}: {error}", path.display()));
    let read = CertificateDer::pem_file_iter(path).map_err(named)?;
    let all: Vec<_> = read.collect::<Result<_, _>>().map_err(named)?;
    match all.is_empty() {
        true => Err(invalid(format!("{}: no certificate", path.display()))),
        false => Ok(all),
    }
}
