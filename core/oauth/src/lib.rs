#![doc = include_str!("../README.md")]
#![deny(missing_docs, unsafe_code)]

pub mod challenge;
#[cfg(feature = "proxy")]
pub mod proxy;
pub mod store;
pub mod tokens;
