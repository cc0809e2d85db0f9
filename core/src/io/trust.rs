//! TLS of a client: the roots that it trusts, in addition to those of the system, and its certificate.

use std::io;
use std::sync::{Arc, Mutex, Weak};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls_platform_verifier::Verifier;

use super::auth::ClientCertificate;
use super::faults::invalid;
use crate::sync::lock;

/// The TLS configuration of a client. `root_certificates` are trusted in addition to those of the
/// system (PEM, one or several per entry), `shown` is the certificate for a server that asks for one,
/// and `protocols` are offered by ALPN.
///
/// # Errors
/// When a certificate or the key cannot be read or is missing, or the two do not match.
pub fn config(
    root_certificates: &[Vec<u8>],
    shown: Option<&ClientCertificate>,
    protocols: &[&[u8]],
) -> io::Result<ClientConfig> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(verifier(root_certificates)?);
    let mut config = match shown {
        None => config.with_no_client_auth(),
        Some(ClientCertificate {
            certificates: own,
            key,
        }) => {
            let own = certificates(own, "the client's certificate is not a PEM certificate")?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
                invalid("the key of the client's certificate is not a PEM private key")
            })?;
            config
                .with_client_auth_cert(own, key)
                .map_err(|_| invalid("the key is not that of the client's certificate"))?
        }
    };
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// TLS sessions that a client may resume, eight of each server: it talks to few. Room for them is reserved at once.
const SESSIONS: usize = 64;

/// A verifier, with the roots that it trusts in addition to those of the system.
type Known = (Vec<Vec<u8>>, Weak<Verifier>);

/// The verifiers in use.
static VERIFIERS: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// The verifier for these roots. Clients share it: the roots of a system have 150 KB.
fn verifier(root_certificates: &[Vec<u8>]) -> io::Result<Arc<Verifier>> {
    let mut all = lock(&VERIFIERS);
    all.retain(|(_, verifier)| verifier.strong_count() > 0);
    let known = all.iter().find(|(roots, _)| roots == root_certificates);
    if let Some(known) = known.and_then(|(_, verifier)| verifier.upgrade()) {
        return Ok(known);
    }
    let mut roots = Vec::new();
    for pem in root_certificates {
        roots.extend(certificates(
            pem,
            "root certificates hold no certificate in PEM",
        )?);
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(roots, provider).map_err(io::Error::other)?;
    let verifier = Arc::new(verifier);
    all.push((root_certificates.to_vec(), Arc::downgrade(&verifier)));
    Ok(verifier)
}

/// All certificates in a PEM text.
///
/// # Errors
/// When a certificate cannot be read; with the text `none` if there are none.
fn certificates(pem: &[u8], none: &'static str) -> io::Result<Vec<CertificateDer<'static>>> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|_| invalid("a certificate cannot be read"))?;
    match all.is_empty() {
        true => Err(invalid(none)),
        false => Ok(all),
    }
}
