//! The view of a registry for clients and for its author: capabilities, lists, changes and warnings.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use super::capabilities::Offered;
use super::pages::{Lists, Pages, Paging, page};
use super::{Registry, actions, lints};
use crate::connection::{Config, Principal};
use crate::mcp::{Method, Revision, Side, extension};
use crate::model::ToolResult;
use crate::policy::Permissions;
use crate::server::subscriptions::Change;
#[cfg(all(feature = "http", feature = "sealing"))]
use crate::server::subscriptions::ChangeFeed;
use crate::server::tasks::Task;

impl Registry {
    /// Returns whether the tools capability is declared.
    pub fn has_tools(&self) -> bool {
        self.may_change || self.offers_tools || !self.tools.is_empty()
    }

    /// Returns whether the resources capability is declared.
    pub fn has_resources(&self) -> bool {
        #[cfg(feature = "skills")]
        if !self.skills.is_empty() {
            return true;
        }
        let some = !self.resources.is_empty() || !self.templates.is_empty();
        self.may_change || self.offers_resources || some
    }

    /// Returns whether the prompts capability is declared.
    pub fn has_prompts(&self) -> bool {
        self.may_change || !self.prompts.is_empty()
    }

    /// Creates the connection configuration of a server with this registry.
    pub fn config(&self, name: &str, version: &str) -> Config {
        let mut extensions = self.extensions.clone();
        if self.has_tasks {
            let tasks = extensions.entry(extension::TASKS.to_owned());
            tasks.or_insert_with(|| "{}".to_owned());
        }
        #[cfg(feature = "skills")]
        if !self.skills.is_empty() {
            let settings = "{\"directoryRead\":true}".to_owned();
            extensions.insert(extension::SKILLS.to_owned(), settings);
        }
        let offered = Offered {
            tools: self.has_tools(),
            resources: self.has_resources(),
            prompts: self.has_prompts(),
            completions: self.completes,
            tasks: self.has_tasks,
            changes: self.may_change,
            subscriptions: self.subscribes,
            experimental: &self.experimental,
            extensions: &extensions,
            profile: self.profile,
        };
        let mut config = Config::new(Side::Server, name, version);
        config.profile = self.profile;
        config.references = self.references.clone();
        config.budget = self.budget.clone();
        config.capabilities = Revision::ALL.map(|revision| offered.to_json(revision).into());
        config
    }

    /// Notifies clients on all connections of a change: every client of a changed list, subscribers
    /// of a changed resource.
    pub fn tell(&self, change: Change<'_>) {
        self.subscribers.tell(change);
    }

    /// The changes that clients are notified of, to be passed on to other processes and taken from them, for a custom
    /// [`Hosting`](crate::server::Hosting). Of several feeds of one server, one is in use at a time.
    #[cfg(all(feature = "http", feature = "sealing"))]
    pub fn change_feed(&self) -> ChangeFeed {
        ChangeFeed::new(&self.subscribers, self.may_change())
    }

    /// Cancels a task and its call. Returns whether it had ended before.
    pub(in crate::server) fn cancel_task(&self, task: &Task) -> bool {
        let had_ended = !self.tasks().end(task, None, false, self.budget());
        task.cancel.cancel(Some("the task was cancelled"));
        if !had_ended {
            self.tell_task(task);
        }
        had_ended
    }

    /// Gives a task answers to its questions: a raw JSON object.
    pub(in crate::server) fn answer_task(&self, task: &Task, given: &str) {
        if task.take_answers(given) {
            self.tell_task(task);
        }
    }

    /// Notifies the task's listeners of its state (R-TSK-16).
    pub(in crate::server) fn tell_task(&self, task: &Task) {
        task.changed();
        match &task.connection {
            Some(owner) => {
                let params = format!("{{{}}}", task.summary());
                // Cannot fail for its params: they are an object.
                let _ = owner.notify(Method::TaskStatus.name(), Some(&params));
            }
            None => self.subscribers.tell_task(&task.id, &task.detail()),
        }
    }

    /// Returns the lists that differ from those of `before`.
    pub(in crate::server) fn changes_since(
        &self,
        before: &Self,
    ) -> impl Iterator<Item = Change<'static>> {
        let (now, before) = (self.edits, before.edits);
        let kinds = [
            (now.tools != before.tools, Change::Tools),
            (now.prompts != before.prompts, Change::Prompts),
            (now.resources != before.resources, Change::Resources),
        ];
        let changed = kinds.into_iter().filter(|(is_changed, _)| *is_changed);
        changed.map(|(_, change)| change)
    }

    pub(super) fn changed(&mut self) {
        self.lists = Default::default();
        self.action_schemas = OnceLock::new();
    }

    /// The permissions, if lists hide what they deny (R-PER-05).
    fn hidden_by(&self, revision: Revision) -> Option<&Permissions> {
        let told = self.profile.in_revision(revision).overlay().tells_denied;
        let policy = self.policy.as_ref().filter(|_| !told);
        policy.and_then(|policy| policy.allowed())
    }

    /// The page size of all lists.
    fn page_len(&self) -> usize {
        self.page_size.map_or(usize::MAX, NonZeroUsize::get)
    }

    /// The cache hints of all lists, as members with a leading comma.
    pub(in crate::server) fn cache_hints(&self) -> String {
        self.cache.members()
    }

    /// How lists are split into pages, with these cache hints.
    pub(in crate::server) fn paging<'a>(&self, hints: &'a str) -> Paging<'a> {
        Paging {
            size: self.page_len(),
            hints,
        }
    }

    /// The pages of all lists in this revision.
    pub(in crate::server) fn lists(&self, revision: Revision) -> &Lists {
        let lists = &self.lists[revision as usize];
        let permits = |list, name: &str| self.permits(list, revision, name);
        lists.get_or_init(|| Arc::new(self.write_lists(revision, permits)))
    }

    /// Writes the pages of all lists, with the entries that `shows` the method of their list and their name.
    fn write_lists(&self, revision: Revision, shows: impl Fn(Method, &str) -> bool) -> Lists {
        let hints = match revision.rules().cache_hints {
            true => self.cache_hints(),
            false => String::new(),
        };
        let paging = self.paging(&hints);
        let templates: Vec<_> = self.templates().collect();
        let (mut tools, mut resources) = (self.tools(), self.resources());
        #[cfg(feature = "skills")]
        resources.extend(self.skills.manifests());
        let (mut templates, mut prompts) = (templates, self.prompts());
        tools.retain(|tool| shows(Method::ListTools, &tool.name));
        resources.retain(|resource| shows(Method::ListResources, &resource.uri));
        templates.retain(|template| shows(Method::ListResourceTemplates, &template.uri_template));
        prompts.retain(|prompt| shows(Method::ListPrompts, &prompt.name));
        Lists {
            tools: paging.of("tools", &tools, |one, out| one.write(out, revision)),
            resources: paging.of("resources", &resources, |one, out| one.write(out, revision)),
            templates: paging.of("resourceTemplates", &templates, |one, out| {
                one.write(out, revision);
            }),
            prompts: paging.of("prompts", &prompts, |one, out| {
                one.write(out, revision);
            }),
        }
    }

    /// Returns whether this server answers `method` with a list.
    pub fn has_list(&self, method: Method) -> bool {
        match method {
            Method::ListTools => self.has_tools(),
            Method::ListResources | Method::ListResourceTemplates => self.has_resources(),
            Method::ListPrompts => self.has_prompts(),
            _ => false,
        }
    }

    /// Whether a list hides an entry from a caller, who lacks scopes for it.
    fn hides(&self, method: Method, name: &str, who: Option<&Principal>) -> bool {
        let policy = self.policy.as_ref();
        policy.is_some_and(|it| it.filters_lists() && it.lacks(method, name, who).is_some())
    }

    /// Whether permissions let the list that `list` asks for show an entry (R-PER-05).
    fn permits(&self, list: Method, revision: Revision, name: &str) -> bool {
        let permissions = self.hidden_by(revision);
        permissions.is_none_or(|permissions| match list {
            Method::ListTools => permissions.may_call(name),
            Method::ListResources | Method::ListSkills => permissions.may_read(name),
            _ => true,
        })
    }

    /// Whether the list that `list` asks for shows an entry to a caller, as far as the policy decides.
    pub(crate) fn shows(
        &self,
        list: Method,
        revision: Revision,
        name: &str,
        who: Option<&Principal>,
    ) -> bool {
        let method = match list {
            Method::ListTools => Method::CallTool,
            Method::ListPrompts => Method::GetPrompt,
            _ => Method::ReadResource,
        };
        self.permits(list, revision, name) && !self.hides(method, name, who)
    }

    /// Whether the policy may have lists leave out anything.
    #[cfg(feature = "client")]
    pub(crate) fn may_hide(&self, revision: Revision) -> bool {
        self.filters_lists() || self.hidden_by(revision).is_some()
    }

    /// Whether lists differ from caller to caller.
    pub(crate) fn filters_lists(&self) -> bool {
        let policy = self.policy.as_ref();
        policy.is_some_and(|policy| policy.filters_lists())
    }

    /// Returns a page of the list that `method` asks for, as the members of its result but `_meta`: JSON without braces.
    /// `cursor` is the raw member of the request, `who` its sender, in case the policy [filters
    /// lists](crate::policy::Policy::filter_lists). `None` if there is no such list or no such page.
    pub fn list_page(
        &self,
        method: Method,
        revision: Revision,
        cursor: Option<&str>,
        who: Option<&Principal>,
    ) -> Option<Cow<'_, str>> {
        if !self.has_list(method) {
            return None;
        }
        if self.filters_lists() {
            let shows = |list, name: &str| self.shows(list, revision, name, who);
            let lists = self.write_lists(revision, shows);
            let page = page(lists.of(method), cursor)?;
            return Some(Cow::Owned(page.to_owned()));
        }
        page(self.lists(revision).of(method), cursor).map(Cow::Borrowed)
    }

    /// The `mcp.get_schema` pages: the schemas of all actions (R-ACT-12).
    pub(in crate::server) fn action_schemas(&self, who: Option<&Principal>) -> Arc<Pages> {
        let write = || {
            let mut tools = self.tools();
            tools.retain(|tool| self.shows_action(&tool.name, who));
            let refers = self.references.is_some();
            Arc::new(actions::schemas(tools.into_iter(), refers, self.page_len()))
        };
        match self.filters_lists() {
            true => write(),
            false => self.action_schemas.get_or_init(write).clone(),
        }
    }

    /// Returns whether `mcp.get_schema` shows this tool; tools that permissions deny are hidden, and those for which
    /// the caller lacks scopes if lists are filtered.
    pub(in crate::server) fn shows_action(&self, tool: &str, who: Option<&Principal>) -> bool {
        let permissions = self.policy.as_ref().and_then(|policy| policy.allowed());
        permissions.is_none_or(|permissions| permissions.may_call(tool))
            && !self.hides(Method::CallTool, tool, who)
    }

    /// Lists departures from recommended practice, one sentence each: see
    /// [`Server::warnings`](crate::server::Server::warnings).
    pub fn warnings(&self) -> Vec<String> {
        let names = self
            .tools
            .values()
            .filter_map(|entry| lints::of_name(&entry.tool.name));
        let resources = self.resources.values().map(|resource| &resource.uri);
        let uris = resources.chain(self.templates().map(|listed| &listed.uri_template));
        let uris = uris.filter_map(|uri| lints::of_uri(uri));
        names.chain(uris).chain(self.lints.all()).collect()
    }

    /// Records a warning if a tool embeds resources but the server declares none (R-TOL-13).
    pub(in crate::server) fn notice(&self, number: u32, result: &ToolResult) {
        if !self.has_resources()
            && let Some(entry) = self.entry(number)
        {
            self.lints.check_embedded(&entry.tool.name, result);
        }
    }
}
