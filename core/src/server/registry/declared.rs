//! The capabilities that a server declares.

use super::Registry;
use crate::connection::Config;
use crate::mcp::{Era, Revision, Side, TaskForm};

impl Registry {
    /// Returns whether the tools capability is declared.
    pub fn has_tools(&self) -> bool {
        self.may_change || self.promises_tools || !self.tool_names.is_empty()
    }

    /// Returns whether the resources capability is declared.
    pub fn has_resources(&self) -> bool {
        #[cfg(feature = "skills")]
        if !self.skills.is_empty() {
            return true;
        }
        let some = !self.resource_uris.is_empty() || !self.templates.is_empty();
        self.may_change || self.embeds || some
    }

    /// Returns whether the prompts capability is declared.
    pub fn has_prompts(&self) -> bool {
        self.may_change || !self.prompt_names.is_empty()
    }

    /// Creates the connection configuration of a server with this registry.
    pub fn config(&self, name: &str, version: &str) -> Config {
        let mut config = Config::new(Side::Server, name, version);
        config.profile = self.profile;
        config.references = self.references.clone();
        config.budget = self.budget.clone();
        config.capabilities = Revision::ALL.map(|revision| self.capabilities(revision).into());
        config
    }

    /// The capabilities declared in this revision (R-CAP-01).
    fn capabilities(&self, revision: Revision) -> String {
        let rules = revision.rules();
        let changes = self.may_change.then_some("\"listChanged\":true");
        let subscribe = self.subscribes.then_some("\"subscribe\":true");
        let mut members = Vec::new();
        let mut declare = |name: &str, settings: [Option<&str>; 2]| {
            let settings: Vec<_> = settings.into_iter().flatten().collect();
            members.push(format!("\"{name}\":{{{}}}", settings.join(",")));
        };
        if self.has_tools() {
            declare("tools", [changes, None]);
        }
        if self.has_resources() {
            declare("resources", [subscribe, changes]);
        }
        if self.has_prompts() {
            declare("prompts", [changes, None]);
        }
        if self
            .profile
            .in_revision(revision)
            .overlay()
            .declares_logging
        {
            declare("logging", [None, None]);
        }
        if self.completes && rules.completions {
            declare("completions", [None, None]);
        }
        match rules.tasks {
            // R-TSK-01
            Some(TaskForm::Core) if self.has_tasks => members.push(
                r#""tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#.to_owned(),
            ),
            _ => {}
        }
        if !self.experimental.is_empty() {
            let member = |(name, settings): (&String, &String)| {
                let name = serde_json::Value::from(name.as_str());
                format!("{name}:{settings}")
            };
            let all: Vec<_> = self.experimental.iter().map(member).collect();
            members.push(format!("\"experimental\":{{{}}}", all.join(",")));
        }
        // R-TSX-01
        if rules.era == Era::Stateless
            && let Some(extensions) = self.extensions()
        {
            members.push(format!("\"extensions\":{extensions}"));
        }
        format!("{{{}}}", members.join(","))
    }
}
