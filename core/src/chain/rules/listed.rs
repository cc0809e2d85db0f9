//! What a rule knows of the tools of a server, for each connection: another one may lead to another version of the server.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use super::super::middleware::{ChainRequest, NextHop};
use super::super::params::json_text;
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::Method;
use crate::sync::lock;

/// The most pages of a list that are asked for to find a tool.
pub(super) const MAX_PAGES: usize = 100;

/// The most tools of a connection that are kept.
pub(super) const MAX_TOOLS: usize = 10_000;

/// Tools as they were listed, each with whether a rule lets it pass.
#[derive(Debug, Default)]
pub(super) struct Listed(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    connections: HashMap<u64, Arc<Tools>>,
    /// Those of the connection that was asked last, which connections to the same version share.
    newest: Arc<Tools>,
    /// How often the server has told of a change.
    changes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tools {
    all: BTreeMap<Box<str>, bool>,
    /// Whether every page has been looked at.
    is_whole: bool,
}

/// What was known of changes when a list was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked(u64);

/// What is known of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It was listed, and passes or not.
    Listed(bool),
    /// The whole list lacks it.
    Missing,
    /// The list has not been looked at, or may have changed since.
    Nothing,
}

impl Listed {
    /// Notes that a list is asked for, before it is.
    pub fn ask(&self) -> Asked {
        Asked(lock(&self.0).changes)
    }

    /// What is known of a tool, as the server lists it on a connection. Nothing is known without a connection.
    pub fn find(&self, connection: Option<u64>, tool: &str) -> Known {
        let state = lock(&self.0);
        let tools = connection.and_then(|connection| state.connections.get(&connection));
        match tools {
            None => Known::Nothing,
            Some(tools) => match tools.all.get(tool) {
                Some(passes) => Known::Listed(*passes),
                None if tools.is_whole => Known::Missing,
                None => Known::Nothing,
            },
        }
    }

    /// Notes the tools of the page that answers a request, unless the list has changed since it was asked for.
    pub fn learn(&self, connection: Option<u64>, asked: Asked, page: Page) {
        self.change(connection, asked, |tools| {
            if page.is_whole {
                *tools = Tools::default();
            }
            tools.is_whole |= page.is_whole;
            for (name, passes) in &page.tools {
                if let Some(known) = tools.all.get_mut(name) {
                    *known = *passes;
                } else if tools.all.len() < MAX_TOOLS {
                    tools.all.insert(name.clone(), *passes);
                }
            }
        });
    }

    fn change(&self, connection: Option<u64>, asked: Asked, change: impl FnOnce(&mut Tools)) {
        let mut state = lock(&self.0);
        let Some(connection) = connection.filter(|_| state.changes == asked.0) else {
            return;
        };
        let mut tools = state.connections.remove(&connection).unwrap_or_default();
        change(Arc::make_mut(&mut tools));
        if *tools == *state.newest {
            tools = state.newest.clone();
        }
        state.newest = tools.clone();
        state.connections.insert(connection, tools);
    }

    /// The list of the server has changed, on whatever connection that was told.
    pub fn changed(&self) {
        let mut state = lock(&self.0);
        state.changes += 1;
        state.connections.clear();
    }

    /// A connection has ended.
    pub fn ended(&self, connection: u64) {
        lock(&self.0).connections.remove(&connection);
    }

    /// What is known of a tool on the connection that `next` leads over. Lists the tools if need be, page by page; `judge` tells which of a
    /// page pass. A list without end is as one that lacks the tool.
    ///
    /// # Errors
    /// Why the list has not come.
    pub async fn look_up(
        &self,
        tool: &str,
        request: &ChainRequest,
        next: &NextHop<'_>,
        judge: impl Fn(&ChainRequest, &str) -> Page,
    ) -> Result<Known, RequestError> {
        let connection = next.connection();
        if let known @ Known::Listed(_) = self.find(connection, tool) {
            return Ok(known);
        }
        let (first, mut cursor) = (self.ask(), String::new());
        for _ in 0..MAX_PAGES {
            let asked = self.ask();
            let list = request.further(Method::ListTools, &cursor)?;
            let page = next.clone().run(list.clone()).await?;
            let judged = judge(&list, page.result());
            let passes = judged.tools.get(tool).copied();
            self.learn(connection, asked, judged);
            if let Some(passes) = passes {
                return Ok(Known::Listed(passes));
            }
            let more = reader::find(page.result(), "nextCursor").and_then(reader::as_str);
            let Some(more) = more else {
                self.change(connection, first, |tools| tools.is_whole = true);
                break;
            };
            cursor = format!("\"cursor\":{}", json_text(&more));
        }
        Ok(Known::Missing)
    }
}

/// A page of a list.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The tools, each with whether it passes.
    pub tools: BTreeMap<Box<str>, bool>,
    /// Whether there are no others.
    is_whole: bool,
}

impl Page {
    /// The page that answers a request. A tool that it has twice passes if both do.
    pub fn judged(request: &ChainRequest, page: &str, passes: impl Fn(&str) -> bool) -> Self {
        let mut tools = BTreeMap::new();
        let lists = reader::members(page).filter(|(name, _)| *name == "tools");
        for tool in lists.flat_map(|(_, list)| reader::elements(list)) {
            if let Some(name) = reader::find(tool, "name").and_then(reader::as_str) {
                let passes = passes(tool);
                let known = tools.entry(name.into()).or_insert(passes);
                *known &= passes;
            }
        }
        let begins = matches!(
            reader::find(request.params(), "cursor"),
            None | Some("null")
        );
        let ends = matches!(reader::find(page, "nextCursor"), None | Some("null"));
        let is_whole = begins && ends;
        Self { tools, is_whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::Revision;

    fn page(tools: &[(&str, bool)]) -> Page {
        let tools = tools.iter();
        let tools = tools.map(|(name, passes)| ((*name).into(), *passes));
        Page {
            tools: tools.collect(),
            is_whole: false,
        }
    }

    #[test]
    fn what_one_connection_lists_is_not_what_another_does() {
        let listed = Listed::default();
        let asked = listed.ask();
        listed.learn(Some(1), asked, page(&[("a", true), ("b", false)]));
        listed.learn(Some(2), asked, page(&[("a", false)]));
        listed.learn(None, asked, page(&[("a", true)]));
        let found = |connection| listed.find(connection, "a");
        assert_eq!(found(Some(1)), Known::Listed(true));
        assert_eq!(found(Some(2)), Known::Listed(false));
        assert_eq!([found(None), found(Some(3))], [Known::Nothing; 2]);
        assert_eq!(listed.find(Some(2), "b"), Known::Nothing);
        listed.ended(1);
        assert_eq!(found(Some(1)), Known::Nothing);
        assert_eq!(found(Some(2)), Known::Listed(false));
    }

    #[test]
    fn a_list_that_is_older_than_a_change_is_forgotten() {
        let listed = Listed::default();
        let asked = listed.ask();
        listed.learn(Some(1), asked, page(&[("a", true)]));
        listed.changed();
        assert_eq!(listed.find(Some(1), "a"), Known::Nothing);
        listed.learn(Some(1), asked, page(&[("a", true)]));
        assert_eq!(listed.find(Some(1), "a"), Known::Nothing);
        listed.learn(Some(1), listed.ask(), page(&[("a", false)]));
        assert_eq!(listed.find(Some(1), "a"), Known::Listed(false));
    }

    #[test]
    fn connections_to_one_version_share_what_is_kept_up_to_a_number() {
        let listed = Listed::default();
        let names: Vec<_> = (0..MAX_TOOLS + 10).map(|n| format!("t{n}")).collect();
        let all = |passes| {
            let tools: Vec<_> = names.iter().map(|name| (&**name, passes)).collect();
            page(&tools)
        };
        let asked = listed.ask();
        for connection in 0..50 {
            listed.learn(Some(connection), asked, all(true));
        }
        let state = lock(&listed.0);
        assert_eq!(state.newest.all.len(), MAX_TOOLS);
        let mut kept = state.connections.values();
        assert!(kept.all(|tools| Arc::ptr_eq(tools, &state.newest)));
        drop(state);
        listed.learn(Some(7), asked, all(false));
        assert_eq!(listed.find(Some(7), "t0"), Known::Listed(false));
        assert_eq!(listed.find(Some(8), "t0"), Known::Listed(true));
    }

    #[test]
    fn a_tool_that_a_page_has_twice_passes_if_both_do() {
        let mut request = ChainRequest::question("tools/list", "{}", Revision::NEWEST).unwrap();
        let text = r#"{"tools":[{"name":"a","x":1},{"name":"a"},{"name":"b","x":1},{"x":1}]}"#;
        let judged =
            |request: &_, page: &str| Page::judged(request, page, |tool| tool.contains("\"x\""));
        let whole = judged(&request, text);
        assert_eq!(whole.tools, page(&[("a", false), ("b", true)]).tools);
        let listed = Listed::default();
        listed.learn(Some(1), listed.ask(), page(&[("c", true)]));
        listed.learn(Some(1), listed.ask(), whole);
        assert_eq!(listed.find(Some(1), "c"), Known::Missing);
        assert!(!judged(&request, r#"{"tools":[],"nextCursor":"x"}"#).is_whole);
        request.set_params(r#"{"cursor":"x"}"#).unwrap();
        assert!(!judged(&request, text).is_whole);
    }
}
