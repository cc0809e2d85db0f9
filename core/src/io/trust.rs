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
    let (verifier, resumption) = shared(root_certificates)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match shown {
        None => {
            let mut config = config.with_no_client_auth();
            config.resumption = resumption;
            config
        }
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
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// What clients with the same roots share: the roots of a system have 150 KB.
struct Shared {
    /// The roots that are trusted in addition to those of the system.
    roots: Vec<Vec<u8>>,
    verifier: Weak<Verifier>,
    /// For clients that show no certificate: a resumed session is that of its certificate.
    resumption: Resumption,
}

/// What is shared, as long as there is a client.
static SHARED: Mutex<Vec<Shared>> = Mutex::new(Vec::new());

fn shared(root_certificates: &[Vec<u8>]) -> io::Result<(Arc<Verifier>, Resumption)> {
    let mut all = lock(&SHARED);
    all.retain(|shared| shared.verifier.strong_count() > 0);
    let known = all.iter().find(|shared| shared.roots == root_certificates);
    if let Some(known) = known.and_then(|it| Some((it.verifier.upgrade()?, it.resumption.clone())))
    {
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
    let (verifier, resumption) = (Arc::new(verifier), Resumption::default());
    all.push(Shared {
        roots: root_certificates.to_vec(),
        verifier: Arc::downgrade(&verifier),
        resumption: resumption.clone(),
    });
    Ok((verifier, resumption))
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
