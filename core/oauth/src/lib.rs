#![doc = include_str!("../README.md")]
#![deny(missing_docs, unsafe_code)]

pub mod challenge;
#[cfg(feature = "client")]
pub mod client;
#[cfg(any(feature = "client", feature = "server", feature = "proxy"))]
mod encoding;
#[cfg(any(feature = "client", feature = "server", feature = "proxy"))]
pub mod jwk;
#[cfg(any(feature = "client", feature = "server", feature = "proxy"))]
mod local;
#[cfg(feature = "proxy")]
pub mod proxy;
#[cfg(feature = "server")]
pub mod server;
pub mod store;
pub mod tokens;
