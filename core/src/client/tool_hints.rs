//! Tool behaviour as stated by annotations, depending on trust in the server.

use std::borrow::Cow;

use crate::json::reader;
use crate::model::Tool;

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

impl Tool {
    /// Returns how the tool behaves.
    ///
    /// ```
    /// use mcpbolt::client::Trust;
    /// use mcpbolt::model::Tool;
    /// let tool = r#"{"name":"list_files","inputSchema":{},"annotations":{"readOnlyHint":true}}"#;
    /// let tool: Tool = serde_json::from_str(tool)?;
    /// assert!(!tool.hints(Trust::Trusted).destructive);
    /// assert!(tool.hints(Trust::Untrusted).destructive);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn hints(&self, trust: Trust) -> ToolHints {
        let said = self.annotations.as_deref();
        let said = said.filter(|_| trust == Trust::Trusted).unwrap_or("{}");
        let hint = |name, default| match reader::find(said, name) {
            Some("true") => true,
            Some("false") => false,
            _ => default,
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
    pub fn display_name(&self) -> Cow<'_, str> {
        let title = self.title.as_deref().map(Cow::Borrowed);
        let hinted = || reader::as_str(reader::find(self.annotations.as_deref()?, "title")?);
        title.or_else(hinted).unwrap_or(Cow::Borrowed(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn tool(more: Value) -> Tool {
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
