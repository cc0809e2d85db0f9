//! The languages of our packages.

use std::path::PathBuf;

use crate::repo;

/// A language that has a package of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    Rust,
    Python,
    Node,
}

impl Language {
    pub const ALL: [Self; 3] = [Self::Rust, Self::Python, Self::Node];

    /// Its name for `--lang`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    /// The source file of the example with that name.
    pub fn example(self, name: &str) -> PathBuf {
        repo::root().join(match self {
            Self::Rust => format!("core/examples/{name}.rs"),
            Self::Python => format!("bindings-python/examples/{name}.py"),
            Self::Node => format!("bindings-node/examples/{name}.mjs"),
        })
    }
}
