//! Changes of what a server offers, and the notifications that report them.

use crate::json::string;
use crate::mcp::Method;

/// A change of what a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources, or the list of templates.
    Resources,
    /// The contents of the resource at this URI.
    Resource(&'a str),
}

impl Change<'_> {
    pub(in crate::server) fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsChanged,
            Self::Prompts => Method::PromptsChanged,
            Self::Resources => Method::ResourcesChanged,
            Self::Resource(_) => Method::ResourceUpdated,
        }
    }

    /// The index of the changed list.
    fn list(self) -> Option<usize> {
        match self {
            Self::Tools => Some(0),
            Self::Prompts => Some(1),
            Self::Resources => Some(2),
            Self::Resource(_) => None,
        }
    }

    /// The members of the notification's params.
    pub(in crate::server) fn members(self) -> Option<String> {
        let Self::Resource(uri) = self else {
            return None;
        };
        let mut members = b"\"uri\":".to_vec();
        string::append(&mut members, uri);
        String::from_utf8(members).ok()
    }
}

/// Suppresses repeated notifications per list. Holds the driver's `taken` count at the last
/// notification: while that count stands, the notification is still queued, and its receiver will
/// fetch the list as it is then.
#[derive(Debug, Default)]
pub(super) struct Coalescer([Option<u64>; 3]);

impl Coalescer {
    /// Returns whether to send this change, and if so records it as sent.
    pub fn is_new(&mut self, change: Change<'_>, taken: u64) -> bool {
        let Some(sent) = change.list().and_then(|list| self.0.get_mut(list)) else {
            return true;
        };
        sent.replace(taken) != Some(taken)
    }
}
