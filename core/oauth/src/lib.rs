#![doc = include_str!("../README.md")]
#![deny(missing_docs, unsafe_code)]

pub mod store;
