//! One stream of `subscriptions/listen` (2026-07-28).

use std::collections::BTreeSet;

use super::change::{Change, Coalescer};
use crate::connection::{Call, CallKey, Handle, ReplyTo};
use crate::json::{reader, string};
use crate::limits::MAX_SUBSCRIPTIONS;
use crate::mcp::{Method, meta};

/// Decides which notifications a client may listen to.
pub(in crate::server) struct Filter<'a> {
    /// Whether the lists may change.
    pub lists: bool,
    /// Whether the client may listen to the resource at this URI.
    pub uri: &'a dyn Fn(&str) -> bool,
    /// Whether the client has the task with this id.
    pub task: &'a dyn Fn(&str) -> bool,
}

/// The notifications that a client asked for.
#[derive(Debug, Default)]
pub(in crate::server) struct Interests {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: BTreeSet<String>,
    /// Task ids of the tasks extension.
    tasks: BTreeSet<String>,
}

impl Interests {
    /// Parses the params of the request; keeps only what `filter` allows (R-SUB-01, R-SUB-03).
    ///
    /// # Errors
    /// A sentence for the client that says what is wrong.
    pub fn parse(params: &str, filter: &Filter<'_>) -> Result<Self, &'static str> {
        let asked = reader::find(params, "notifications").filter(|asked| asked.starts_with('{'));
        let asked = asked.ok_or("notifications must be an object that says what to listen to")?;
        let wants = |name| filter.lists && reader::find(asked, name) == Some("true");
        let strings = |name, allowed: &dyn Fn(&str) -> bool| {
            let mut found = BTreeSet::new();
            let all = reader::elements(reader::find(asked, name).unwrap_or("[]"));
            for text in all.filter_map(reader::as_str).filter(|text| allowed(text)) {
                found.insert(text.into_owned());
                if found.len() > MAX_SUBSCRIPTIONS {
                    return Err("too many subscriptions");
                }
            }
            Ok(found)
        };
        let uris = strings("resourceSubscriptions", filter.uri)?;
        let tasks = strings("taskIds", filter.task)?;
        Ok(Self {
            tools: wants("toolsListChanged"),
            prompts: wants("promptsListChanged"),
            resources: wants("resourcesListChanged"),
            uris,
            tasks,
        })
    }

    /// Total length in bytes of the URIs and task ids.
    pub fn bytes(&self) -> usize {
        self.uris.iter().chain(&self.tasks).map(String::len).sum()
    }

    /// The ids of tasks.
    pub fn tasks(&self) -> impl Iterator<Item = &str> {
        self.tasks.iter().map(String::as_str)
    }

    /// Leaves a task out.
    pub fn forget_task(&mut self, id: &str) {
        self.tasks.remove(id);
    }

    fn to_json(&self) -> String {
        let mut out = b"{".to_vec();
        for (name, wanted) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if wanted {
                string::append(&mut out, name);
                out.extend_from_slice(b":true,");
            }
        }
        for (name, all) in [
            ("resourceSubscriptions", &self.uris),
            ("taskIds", &self.tasks),
        ] {
            if all.is_empty() {
                continue;
            }
            string::append(&mut out, name);
            out.extend_from_slice(b":[");
            for one in all {
                string::append(&mut out, one);
                out.push(b',');
            }
            out.pop();
            out.extend_from_slice(b"],");
        }
        if out.last() == Some(&b',') {
            out.pop();
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }
}

/// A stream that is open until the client cancels it or the server ends it.
#[derive(Debug)]
pub(super) struct Listen {
    reply: ReplyTo,
    interests: Interests,
    coalescer: Coalescer,
}

impl Listen {
    pub fn new(call: &Call, interests: Interests) -> Self {
        let reply = call.reply.clone();
        Self {
            reply,
            interests,
            coalescer: Coalescer::default(),
        }
    }

    /// Total length in bytes of the URIs and task ids.
    pub fn bytes(&self) -> usize {
        self.interests.bytes()
    }

    /// The resources that the client listens to.
    #[cfg(all(feature = "http", feature = "sealing"))]
    pub fn uris(&self) -> impl Iterator<Item = &str> {
        self.interests.uris.iter().map(String::as_str)
    }

    pub fn is(&self, key: CallKey) -> bool {
        self.reply.key() == key
    }

    /// The `_meta` of every message on this stream: the request's id in its original spelling
    /// (R-SUB-04).
    fn meta(&self) -> String {
        format!(
            "{{\"{}\":{}}}",
            meta::SUBSCRIPTION_ID,
            self.reply.id().raw()
        )
    }

    pub fn acknowledge(&self, handle: &Handle) {
        let params = format!(
            "{{\"notifications\":{},\"_meta\":{}}}",
            self.interests.to_json(),
            self.meta()
        );
        let method = Method::SubscriptionAcknowledged;
        handle.replies().notification(&self.reply, method, &params);
    }

    /// Notifies the client of a change that it listens to (R-SUB-05).
    pub fn tell(&mut self, handle: &Handle, change: Change<'_>, taken: u64) {
        let wanted = match change {
            Change::Tools => self.interests.tools,
            Change::Prompts => self.interests.prompts,
            Change::Resources => self.interests.resources,
            Change::Resource(uri) => self.interests.uris.contains(uri),
        };
        if wanted && self.coalescer.is_new(change, taken) {
            let members = change
                .members()
                .map_or_else(String::new, |members| members + ",");
            let params = format!("{{{members}\"_meta\":{}}}", self.meta());
            handle
                .replies()
                .notification(&self.reply, change.method(), &params);
        }
    }

    /// Notifies the client of the state of a task that it listens to (R-TSX-17).
    pub fn tell_task(&self, handle: &Handle, id: &str, detail: &str) {
        if self.interests.tasks.contains(id) {
            let params = format!("{{{detail},\"_meta\":{}}}", self.meta());
            let mut replies = handle.replies();
            replies.notification(&self.reply, Method::Tasks, &params);
        }
    }

    /// Ends the stream with its result, and then, on a connection that other streams share, with a
    /// cancelled notification.
    pub fn end(&self, handle: &Handle) {
        let meta = self.meta();
        let mut replies = handle.replies();
        replies.result(&self.reply, |result| result.meta(&meta));
        drop(replies);
        let params = format!("{{\"requestId\":{}}}", self.reply.id().raw());
        // Cannot fail for its params: they are an object.
        let _ = handle.notify(Method::Cancelled.name(), Some(&params));
    }
}
