//! What clients may call and read at all, as patterns.

use std::time::Duration;

use serde::Deserialize;

use super::glob::{fits, normalised};

/// What clients may call and read: nothing but what is allowed, and of that nothing that is denied
/// (R-PER-01 to R-PER-04).
///
/// Tools are named exactly; `*` allows every one. Resources are patterns of URIs, in which `*`
/// stands for anything within one segment and `**` for anything; they are held against the URI in
/// one spelling, and a URI that leads upwards is never allowed.
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
    /// By URI.
    pub resources: Patterns,
    /// By name.
    pub tools: Patterns,
    /// Largest resource that is given out, in bytes of its contents.
    pub max_resource_size: Option<u64>,
    /// Longest that a tool may take, in milliseconds.
    pub max_tool_execution_time: Option<u64>,
    /// Whether the names of tools are patterns, too.
    pub tool_patterns: bool,
}

/// What is allowed, and what of it is denied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Patterns {
    /// Without any, nothing is.
    pub allowed: Vec<String>,
    /// Wins.
    pub denied: Vec<String>,
}

impl Patterns {
    /// Everything.
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
    /// Everything, to be narrowed.
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

    /// Whether a resource may be read, or subscribed to.
    pub fn may_read(&self, uri: &str) -> bool {
        let Some(uri) = normalised(uri) else {
            return false;
        };
        self.resources.admit(|pattern| fits(pattern, &uri))
    }

    /// Longest that a tool may take.
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

    /// R-PER-03, R-PER-04: the names of tools are patterns only by an option.
    #[test]
    fn a_star_in_the_name_of_a_tool_is_a_star() {
        let exact = of(r#"{"tools":{"allowed":["read_*"]}}"#);
        assert!(!exact.may_call("read_file") && exact.may_call("read_*"));
        let patterns = of(r#"{"tools":{"allowed":["read_*"]},"toolPatterns":true}"#);
        assert!(patterns.may_call("read_file") && !patterns.may_call("write_file"));
        // A denied star is one name, as the document has it.
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
