//! TLS as a client speaks it: what the system trusts, and what a program trusts beside it.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;

/// What a client trusts: PEM, one or several in each; `protocols` are those that the two sides may
/// agree on.
///
/// # Errors
/// When a certificate cannot be read, or there is none.
pub fn config(root_certificates: &[Vec<u8>], protocols: &[&[u8]]) -> io::Result<ClientConfig> {
    let mut roots = Vec::new();
    for pem in root_certificates {
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.push(certificate.map_err(|_| invalid("a certificate cannot be read"))?);
        }
        if roots.len() == before {
            return Err(invalid("root certificates hold no certificate in PEM"));
        }
    }
    let provider = Arc::new(ring::default_provider());
    let verifier =
        Verifier::new_with_extra_roots(roots, provider.clone()).map_err(io::Error::other)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
