//! Schemas without the means to check by them: values are read by their types alone.

use super::{InvalidSchema, parse};
#[cfg(feature = "server")]
use super::{Misfit, parse_input};

/// A schema that was read.
#[derive(Debug)]
pub(crate) struct Unchecked;

impl Unchecked {
    #[cfg(feature = "server")]
    pub fn input(json: &str) -> Result<Self, InvalidSchema> {
        parse_input(json).map(|_| Self)
    }

    pub fn new(json: &str) -> Result<Self, InvalidSchema> {
        parse(json).map(|_| Self)
    }

    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "as the schema that checks"
    )]
    pub fn check(&self, _json: &str) -> Result<(), String> {
        Ok(())
    }

    #[cfg(feature = "server")]
    #[expect(clippy::unused_self, reason = "as the schema that checks")]
    pub fn misfit(&self, _json: &str) -> Option<Misfit> {
        None
    }
}
