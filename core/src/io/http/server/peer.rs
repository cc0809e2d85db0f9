//! Facts about a peer that the owner of its connection puts into the extensions of each request.

use std::net::SocketAddr;
use std::sync::Arc;

/// The address that a request comes from. This crate's own listeners put it into the extensions of each
/// request; any other host that knows the address should do the same. Requests without a `PeerAddress`
/// count as one source.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub SocketAddr);

/// The client certificate of the TLS connection, in DER.
#[derive(Clone, Debug)]
pub struct PeerCertificate(pub Arc<[u8]>);
