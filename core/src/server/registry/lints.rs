//! Warnings to the server's author about departures from recommended practice. They never affect
//! clients.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::tool_entry::quoted;
use crate::model::{Content, ToolResult};

/// Maximum number of warnings kept.
const MAX_WARNINGS: usize = 100;

/// Warnings noticed while serving. Shared by all versions of a registry.
#[derive(Debug, Default)]
pub(super) struct Lints(Mutex<BTreeSet<String>>);

impl Lints {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The warnings so far.
    pub fn all(&self) -> BTreeSet<String> {
        self.lock().clone()
    }

    /// Records a warning if a result of the tool embeds resources; for servers that declare none
    /// (R-TOL-13).
    pub fn check_embedded(&self, tool: &str, result: &ToolResult) {
        let is_resource = |content: &Content| matches!(content, Content::Resource { .. });
        if result.content.iter().any(is_resource) {
            let name = quoted(tool);
            self.add(format!(
                "tool {name} embeds resources: the server should offer resources, if only an empty list"
            ));
        }
    }

    fn add(&self, warning: String) {
        let mut warnings = self.lock();
        if warnings.len() < MAX_WARNINGS {
            warnings.insert(warning);
        }
    }
}

/// A warning about the name of a tool (R-NAM-01).
pub(super) fn of_name(tool: &str) -> Option<String> {
    let name = quoted(tool);
    let why = format!("tool {name}: some clients take only names of 1 to 128 of A-Z a-z 0-9 _ - .");
    (!is_plain(tool)).then_some(why)
}

/// A warning about the URI of a resource or template (R-RES-11).
pub(super) fn of_uri(uri: &str) -> Option<String> {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    let why = || {
        format!(
            "resource {}: https is for what clients can fetch themselves",
            quoted(uri)
        )
    };
    scheme.eq_ignore_ascii_case("https").then(why)
}

/// R-NAM-01
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_warnings_are_kept_than_may_be() {
        let warnings = Lints::default();
        for n in 0..10 * MAX_WARNINGS {
            warnings.add(format!("tool {n}"));
        }
        assert_eq!(warnings.lock().len(), MAX_WARNINGS);
    }

    /// R-NAM-01, R-NAM-02.
    #[test]
    fn a_plain_name_is_one_that_every_client_takes() {
        for plain in ["a", "get_user-2.v1", "A", &"x".repeat(128)] {
            assert!(is_plain(plain), "{plain}");
        }
        for other in ["", "a b", "a,b", "a/b", "\u{e4}", &"x".repeat(129)] {
            assert!(!is_plain(other), "{other}");
        }
    }
}
