//! Warnings to the server's author about departures from recommended practice. They never affect
//! clients.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Registry, quoted};
use crate::server::content::{Content, ToolResult};

/// Maximum number of warnings kept.
const MAX_REMARKS: usize = 100;

/// Warnings noticed while serving. Shared by all versions of a registry.
#[derive(Debug, Default)]
pub(in crate::server) struct Lints(Mutex<BTreeSet<String>>);

impl Lints {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, remark: String) {
        let mut remarks = self.lock();
        if remarks.len() < MAX_REMARKS {
            remarks.insert(remark);
        }
    }
}

impl Registry {
    /// Lists departures from recommended practice, one sentence each: see
    /// [`Server::warnings`](crate::server::Server::warnings).
    pub fn warnings(&self) -> Vec<String> {
        let tools = self
            .tools
            .values()
            .filter(|(tool, _)| !is_plain(&tool.name));
        let names = tools.map(|(tool, _)| {
            let name = quoted(&tool.name);
            format!("tool {name}: some clients take only names of 1 to 128 of A-Z a-z 0-9 _ - .")
        });
        let uris = self.resources.values().map(|resource| &resource.uri);
        let templates = self.templates.values().map(|(resource, _)| &resource.uri);
        let fetched = uris.chain(templates).filter(|uri| {
            let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
            scheme.eq_ignore_ascii_case("https")
        });
        let fetched = fetched.map(|uri| {
            let uri = quoted(uri);
            format!("resource {uri}: https is for what clients can fetch themselves")
        });
        let noticed = self.remarks.lock().clone();
        names.chain(fetched).chain(noticed).collect()
    }

    /// Records a warning if a tool embeds resources but the server declares none (R-TOL-13).
    pub(in crate::server) fn notice(&self, number: u32, result: &ToolResult) {
        let is_resource = |content: &Content| matches!(content, Content::Resource(_));
        if !self.has_resources()
            && result.content.iter().any(is_resource)
            && let Some((tool, _)) = self.tools.get(number)
        {
            let name = quoted(&tool.name);
            self.remarks.add(format!(
                "tool {name} embeds resources: the server should offer resources, if only an empty list"
            ));
        }
    }
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
        let remarks = Lints::default();
        for n in 0..10 * MAX_REMARKS {
            remarks.add(format!("tool {n}"));
        }
        assert_eq!(remarks.lock().len(), MAX_REMARKS);
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
