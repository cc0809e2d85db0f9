//! The capabilities that a server declares.

use std::collections::BTreeMap;

use crate::mcp::{Era, Profile, Revision, TaskForm};

/// The features of a server that its capabilities declare.
pub(super) struct Offered<'a> {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
    pub completions: bool,
    pub tasks: bool,
    /// Whether the lists may change.
    pub changes: bool,
    /// Whether clients may subscribe to resources.
    pub subscriptions: bool,
    /// Settings of the `experimental` capabilities by name, JSON objects.
    pub experimental: &'a BTreeMap<String, String>,
    /// Settings of the extensions by id, JSON objects.
    pub extensions: &'a BTreeMap<String, String>,
    pub profile: Profile,
}

impl Offered<'_> {
    /// The capabilities in this revision, a JSON object (R-CAP-01).
    pub fn to_json(&self, revision: Revision) -> String {
        let rules = revision.rules();
        let overlay = self.profile.in_revision(revision).overlay();
        let changes = match self.changes {
            true => "{\"listChanged\":true}",
            false => "{}",
        };
        let resources = match (self.subscriptions, self.changes) {
            (true, true) => "{\"subscribe\":true,\"listChanged\":true}",
            (true, false) => "{\"subscribe\":true}",
            (false, _) => changes,
        };
        // R-TSK-01
        let tasks = self.tasks && rules.tasks == Some(TaskForm::Core);
        let (experimental, extensions) = (object(self.experimental), object(self.extensions));
        let all = [
            (self.tools, "tools", changes),
            (self.resources, "resources", resources),
            (self.prompts, "prompts", changes),
            (overlay.declares_logging, "logging", "{}"),
            (self.completions && rules.completions, "completions", "{}"),
            (
                tasks,
                "tasks",
                r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#,
            ),
            (!self.experimental.is_empty(), "experimental", &experimental),
            // R-TSX-01
            (
                !self.extensions.is_empty() && rules.era == Era::Stateless,
                "extensions",
                &extensions,
            ),
        ];
        let declared = all.into_iter().filter(|(is_declared, ..)| *is_declared);
        let members: Vec<_> = declared
            .map(|(_, name, settings)| format!("\"{name}\":{settings}"))
            .collect();
        format!("{{{}}}", members.join(","))
    }
}

fn object(members: &BTreeMap<String, String>) -> String {
    let member = |(name, json): (&String, &String)| {
        let name = serde_json::Value::from(name.as_str());
        format!("{name}:{json}")
    };
    let members: Vec<_> = members.iter().map(member).collect();
    format!("{{{}}}", members.join(","))
}

/// Returns whether a text is a JSON object.
pub(super) fn is_object(json: &str) -> bool {
    json.trim_start().starts_with('{') && crate::json::validate(json.as_bytes(), 64).is_ok()
}
