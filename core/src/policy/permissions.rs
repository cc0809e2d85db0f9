//! The tools that clients may call and the resources that they may read, as patterns.

use std::time::Duration;

use serde::Deserialize;

use super::glob::{fits, normalised};

/// The tools and resources that clients may use: those that are allowed and not denied (R-PER-01 to
/// R-PER-04).
///
/// Tools are given by their exact names; `*` allows all of them. Resources are given by patterns of
/// URIs: `*` matches anything within one path segment, `**` anything. URIs are normalised before they
/// are matched; a URI with a `..` segment is never allowed.
///
/// ```
/// use mcpbolt::policy::Permissions;
/// let permissions: Permissions = serde_json::from_str(
///     r#"{"resources": {"allowed": ["file:///srv/**"], "denied": ["file:///srv/secret/**"]},
///         "tools": {"allowed": ["*"], "denied": ["delete"]},
///         "maxResourceSize": 1000000, "maxToolExecutionTime": 30000}"#,
/// )?;
/// assert!(permissions.may_read("file:///srv/a.txt"));
/// assert!(!permissions.may_read("file:///srv/secret/a.txt"));
/// assert!(!permissions.may_read("file:///srv/../etc/passwd"));
/// assert!(permissions.may_call("search") && !permissions.may_call("delete"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Permissions {
    /// Patterns of URIs.
    pub resources: Patterns,
    /// Names of tools.
    pub tools: Patterns,
    /// Maximum size of a resource that may be read, in bytes of its contents.
    pub max_resource_size: Option<u64>,
    /// Maximum duration of a tool call, in milliseconds.
    pub max_tool_execution_time: Option<u64>,
    /// Whether the names of tools are patterns, too. Off by default.
    pub tool_patterns: bool,
}

/// An allow list and a deny list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Patterns {
    /// Patterns of allowed names. If empty, nothing is allowed.
    pub allowed: Vec<String>,
    /// Patterns of denied names; they override `allowed`.
    pub denied: Vec<String>,
}

impl Patterns {
    /// Allows everything.
    pub fn all() -> Self {
        Self {
            allowed: vec!["**".to_owned(), "*".to_owned()],
            denied: Vec::new(),
        }
    }

    fn admit(&self, matches: impl Fn(&str) -> bool) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern));
        any(&self.allowed) && !any(&self.denied)
    }
}

impl Permissions {
    /// Allows everything; narrow it by changing the fields.
    pub fn all() -> Self {
        Self {
            resources: Patterns::all(),
            tools: Patterns::all(),
            ..Self::default()
        }
    }

    /// Whether a tool may be called.
    pub fn may_call(&self, tool: &str) -> bool {
        let all = |patterns: &[String]| patterns.iter().any(|pattern| pattern == "*");
        match self.tool_patterns {
            true => self.tools.admit(|pattern| fits(pattern, tool)),
            false => {
                let named = self.tools.admit(|pattern| pattern == tool);
                let denied = self.tools.denied.iter().any(|pattern| pattern == tool);
                named || all(&self.tools.allowed) && !denied
            }
        }
    }

    /// Whether a resource may be read or subscribed to.
    pub fn may_read(&self, uri: &str) -> bool {
        let Some(uri) = normalised(uri) else {
            return false;
        };
        self.resources.admit(|pattern| fits(pattern, &uri))
    }

    /// Maximum duration of a tool call.
    pub fn tool_timeout(&self) -> Option<Duration> {
        self.max_tool_execution_time.map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Permissions {
        serde_json::from_str(json).unwrap()
    }

    /// R-PER-02, R-PER-03
    #[test]
    fn what_is_not_allowed_is_denied_and_what_is_denied_is_not_allowed() {
        let nothing = Permissions::default();
        assert!(!nothing.may_call("a") && !nothing.may_read("file:///a"));
        let all = Permissions::all();
        assert!(all.may_call("a") && all.may_read("file:///a/b"));
        let some = of(
            r#"{"tools":{"allowed":["a","b"],"denied":["b"]},"resources":{"allowed":["file:///x/*"],"denied":["file:///x/y"]}}"#,
        );
        assert_eq!(
            ["a", "b", "c"].map(|name| some.may_call(name)),
            [true, false, false]
        );
        let read = [
            "file:///x/z",
            "file:///x/y",
            "file:///x/./y",
            "file:///x/z/z",
            "file:///y",
        ];
        assert_eq!(
            read.map(|uri| some.may_read(uri)),
            [true, false, false, false, false]
        );
    }

    /// R-PER-03, R-PER-04: names of tools are patterns only if `tool_patterns` is set.
    #[test]
    fn a_star_in_the_name_of_a_tool_is_a_star() {
        let exact = of(r#"{"tools":{"allowed":["read_*"]}}"#);
        assert!(!exact.may_call("read_file") && exact.may_call("read_*"));
        let patterns = of(r#"{"tools":{"allowed":["read_*"]},"toolPatterns":true}"#);
        assert!(patterns.may_call("read_file") && !patterns.may_call("write_file"));
        // A `*` in the deny list is the name of one tool.
        let odd = of(r#"{"tools":{"allowed":["*"],"denied":["*"]}}"#);
        assert!(odd.may_call("a") && !odd.may_call("*"));
    }

    /// R-PER-01
    #[test]
    fn a_member_that_is_misspelt_is_refused() {
        assert!(serde_json::from_str::<Permissions>(r#"{"tool":{}}"#).is_err());
        let limits = of(r#"{"maxResourceSize":5,"maxToolExecutionTime":250}"#);
        assert_eq!(limits.tool_timeout(), Some(Duration::from_millis(250)));
        assert_eq!(limits.max_resource_size, Some(5));
    }
}
