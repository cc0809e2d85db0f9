//! Tool behaviour as stated by annotations, depending on trust in the server.

use serde_json::Value;

use super::results::ToolInfo;

/// Whether a client believes what a server says about its tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Ignores the annotations: every tool counts as dangerous (R-TOL-08).
    #[default]
    Untrusted,
    /// The user, or the operator of the client, trusts this server.
    Trusted,
}

/// How a tool behaves. Missing or untrusted annotations count as the most dangerous value
/// (R-ANN-02).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolHints {
    /// The tool changes nothing.
    pub read_only: bool,
    /// The tool may destroy something. Always `false` for a read-only tool.
    pub destructive: bool,
    /// A repeated call has no further effect. Always `true` for a read-only tool.
    pub idempotent: bool,
    /// The tool interacts with the world outside its server.
    pub open_world: bool,
}

impl ToolInfo {
    /// Returns how the tool behaves.
    ///
    /// ```
    /// use mcpbolt::client::{ToolInfo, Trust};
    /// let tool = r#"{"name":"list_files","inputSchema":{},"annotations":{"readOnlyHint":true}}"#;
    /// let tool: ToolInfo = serde_json::from_str(tool)?;
    /// assert!(!tool.hints(Trust::Trusted).destructive);
    /// assert!(tool.hints(Trust::Untrusted).destructive);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn hints(&self, trust: Trust) -> ToolHints {
        let said = match trust {
            Trust::Trusted => self.other.get("annotations"),
            Trust::Untrusted => None,
        };
        let hint = |name, default| {
            let hint = said.and_then(|said| said.get(name)?.as_bool());
            hint.unwrap_or(default)
        };
        let read_only = hint("readOnlyHint", false);
        ToolHints {
            read_only,
            destructive: !read_only && hint("destructiveHint", true),
            idempotent: read_only || hint("idempotentHint", false),
            open_world: hint("openWorldHint", true),
        }
    }

    /// Returns the tool's display name: its title, the title in its annotations, or its name
    /// (R-ANN-03).
    pub fn display_name(&self) -> &str {
        let title = self.other.get("title").and_then(Value::as_str);
        let hinted = || self.other.get("annotations")?.get("title")?.as_str();
        title.or_else(hinted).unwrap_or(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(more: Value) -> ToolInfo {
        let mut tool = json!({"name": "name", "inputSchema": {"type": "object"}});
        let members = tool.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        serde_json::from_value(tool).unwrap()
    }

    /// R-ANN-02, R-TOL-08.
    #[test]
    fn what_is_not_said_or_not_believed_is_the_worst() {
        let hints = |read_only, destructive, idempotent, open_world| ToolHints {
            read_only,
            destructive,
            idempotent,
            open_world,
        };
        let worst = hints(false, true, false, true);
        for (said, believed) in [
            (json!({}), worst),
            (json!({"annotations": {}}), worst),
            (json!({"annotations": {"readOnlyHint": "yes"}}), worst),
            (
                json!({"annotations": {"destructiveHint": false, "idempotentHint": true}}),
                hints(false, false, true, true),
            ),
            (
                json!({"annotations": {"readOnlyHint": true, "openWorldHint": false}}),
                hints(true, false, true, false),
            ),
            // These two annotations matter only for a tool that changes something.
            (
                json!({"annotations": {
                    "readOnlyHint": true, "destructiveHint": true, "idempotentHint": false,
                }}),
                hints(true, false, true, true),
            ),
        ] {
            let tool = tool(said);
            assert_eq!(tool.hints(Trust::Trusted), believed, "{tool:?}");
            assert_eq!(tool.hints(Trust::default()), worst);
        }
    }

    /// R-ANN-03.
    #[test]
    fn a_tool_is_shown_by_the_first_of_its_names() {
        let hinted = json!({"title": "hinted"});
        let (title, name) = (json!("title"), tool(json!({})));
        assert_eq!(name.display_name(), "name");
        let second = tool(json!({ "annotations": hinted }));
        assert_eq!(second.display_name(), "hinted");
        let first = tool(json!({"annotations": hinted, "title": title}));
        assert_eq!(first.display_name(), "title");
    }
}
