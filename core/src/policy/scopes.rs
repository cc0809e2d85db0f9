//! The scopes that tools, resources and prompts require.

use std::collections::BTreeMap;

use super::glob::{fits, normalised};
use crate::connection::Principal;
use crate::mcp::Method;

/// What is required, and which scopes imply others.
#[derive(Clone, Debug, Default)]
pub(super) struct Scopes {
    pub tools: BTreeMap<String, Vec<String>>,
    pub prompts: BTreeMap<String, Vec<String>>,
    /// By patterns of URIs.
    pub resources: BTreeMap<String, Vec<String>>,
    /// The narrower scopes, by the broader one.
    pub implied: BTreeMap<String, Vec<String>>,
    /// Whether lists leave out what the caller lacks scopes for.
    pub filter_lists: bool,
}

impl Scopes {
    /// The scopes that a request requires, each once.
    fn required(&self, method: Method, name: &str) -> Vec<&str> {
        let mut all = Vec::new();
        match method {
            Method::CallTool => all.extend(self.tools.get(name)),
            Method::GetPrompt => all.extend(self.prompts.get(name)),
            Method::Complete => {
                all.extend(self.prompts.get(name));
                all.extend(self.of_resource(name));
            }
            Method::ReadResource | Method::Subscribe | Method::GetSkill | Method::ReadDirectory => {
                all.extend(self.of_resource(name));
            }
            _ => {}
        }
        let mut required: Vec<&str> = Vec::new();
        for scope in all.into_iter().flatten() {
            if !required.contains(&&**scope) {
                required.push(scope);
            }
        }
        required
    }

    /// The scopes by the patterns that a URI matches; a URI that leaves its folder may match any.
    fn of_resource(&self, uri: &str) -> impl Iterator<Item = &Vec<String>> {
        let uri = match self.resources.is_empty() {
            true => None,
            false => normalised(uri),
        };
        let matching = self.resources.iter();
        let matching =
            matching.filter(move |(pattern, _)| uri.as_ref().is_none_or(|uri| fits(pattern, uri)));
        matching.map(|(_, scopes)| scopes)
    }

    /// Whether a scope was granted, or one that implies it (R-AUS-08).
    pub fn holds(&self, who: Option<&Principal>, scope: &str) -> bool {
        let Some(who) = who else { return false };
        if who.has_scope(scope) {
            return true;
        }
        if self.implied.is_empty() {
            return false;
        }
        let mut held: Vec<&str> = who.scopes().collect();
        let mut at = 0;
        while let Some(broad) = held.get(at) {
            for narrow in self.implied.get(*broad).into_iter().flatten() {
                if narrow == scope {
                    return true;
                }
                if !held.contains(&&**narrow) {
                    held.push(narrow);
                }
            }
            at += 1;
        }
        false
    }

    /// All scopes that a request requires, separated by spaces, if `who` lacks any of them (R-AUS-06).
    pub fn lacks(&self, method: Method, name: &str, who: Option<&Principal>) -> Option<String> {
        let required = self.required(method, name);
        let holds = |scope: &&str| self.holds(who, scope);
        (!required.iter().all(holds)).then(|| required.join(" "))
    }

    /// Every scope that anything requires.
    #[cfg(feature = "resource-server")]
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let maps = [&self.tools, &self.resources, &self.prompts];
        let scopes = maps.into_iter().flat_map(|it| it.values().flatten());
        scopes.map(|scope| &**scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let pairs = pairs.iter();
        pairs
            .map(|(name, texts)| ((*name).to_owned(), owned(texts)))
            .collect()
    }

    /// R-AUS-06, R-AUS-08: a broad scope implies narrower ones over any number of steps, and a circle of
    /// scopes ends; all scopes of an operation are named at once.
    #[test]
    fn what_is_required_may_be_implied() {
        let scopes = Scopes {
            tools: map(&[("write", &["files:write", "mcp"])]),
            prompts: map(&[("ask", &["chat"])]),
            resources: map(&[
                ("file:///a/**", &["files:read"]),
                ("file:///a/secret/*", &["secret"]),
            ]),
            implied: map(&[
                ("admin", &["files:write", "chat"]),
                ("files:write", &["files:read"]),
                ("files:read", &["admin2"]),
                ("admin2", &["files:read"]),
            ]),
            filter_lists: false,
        };
        let lacks = |method, name: &str, granted: &[&str]| {
            let who = Principal::new("alice").with_scopes(granted.iter().copied());
            scopes.lacks(method, name, Some(&who))
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            lacks(Method::CallTool, "write", &["mcp"]),
            text("files:write mcp")
        );
        assert_eq!(lacks(Method::CallTool, "write", &["mcp", "admin"]), None);
        assert_eq!(
            lacks(Method::CallTool, "write", &["mcp", "files:read"]),
            text("files:write mcp")
        );
        assert_eq!(lacks(Method::CallTool, "other", &[]), None);
        assert_eq!(lacks(Method::GetPrompt, "ask", &["admin"]), None);
        assert_eq!(lacks(Method::GetPrompt, "ask", &["mcp"]), text("chat"));
        assert_eq!(lacks(Method::Complete, "ask", &["mcp"]), text("chat"));
        let read = Method::ReadResource;
        assert_eq!(lacks(read, "file:///a/b", &["admin"]), None);
        assert_eq!(
            lacks(read, "file:///a/secret/b", &["admin"]),
            text("files:read secret")
        );
        assert_eq!(
            lacks(read, "file:///a/x/../secret/b", &["files:read"]),
            text("files:read secret")
        );
        assert_eq!(lacks(read, "file:///c", &[]), None);
        assert_eq!(
            scopes.lacks(Method::CallTool, "write", None),
            text("files:write mcp")
        );
    }
}
