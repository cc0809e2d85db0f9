//! Tools that must stay what they were when somebody looked at them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use super::super::middleware::{
    ChainAnswer, ChainNotification, ChainRequest, ChainResponse, Middleware, NextHop,
    RelayDirection, refusal,
};
use super::super::params::push;
use super::listed::{Known, Listed, Page};
use crate::digest::sha256;
use crate::json::{reader, string};
use crate::mcp::Method;
use crate::mcp::code::INVALID_PARAMS;
use crate::panics::contain;
use crate::sync::lock;

/// The most reports that are remembered, so that each is made once.
const MAX_TOLD: usize = 1024;

/// The members of a tool that a pin covers: all that a model, or a client that decides on a call, is told of the tool.
const PINNED: [&str; 6] = [
    "annotations",
    "description",
    "inputSchema",
    "name",
    "outputSchema",
    "title",
];

/// The pin of a tool, given as raw JSON: `sha256:` and the hash of its name, title, description, schemas and annotations. These are
/// hashed as canonical JSON: without white space, with members in the order of their names and the shortest escapes, so that a server may
/// write them in another order.
///
/// ```
/// use mcpbolt::chain::tool_pin;
/// let one = tool_pin(r#"{"name": "add", "description": "Adds"}"#);
/// assert_eq!(one, tool_pin(r#"{"icons":[],"description":"\u0041dds","name":"add"}"#));
/// assert_ne!(one, tool_pin(r#"{"name":"add","description":"Adds."}"#));
/// ```
pub fn tool_pin(tool: &str) -> String {
    let mut members: Vec<_> = reader::members(tool)
        .filter_map(|(name, value)| Some((name.decode().ok()?, value)))
        .filter(|(name, _)| PINNED.contains(&&**name))
        .collect();
    let mut out = Vec::new();
    append_members(&mut out, &mut members);
    sha256(&out)
}

fn append_members(out: &mut Vec<u8>, members: &mut [(Cow<'_, str>, &str)]) {
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    out.push(b'{');
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        string::append(out, name);
        out.push(b':');
        append_canonical(out, value);
    }
    out.push(b'}');
}

/// Appends a value as canonical JSON. Its depth is that of a message, which is bounded.
fn append_canonical(out: &mut Vec<u8>, json: &str) {
    match json.as_bytes().first() {
        Some(b'{') => {
            let members = reader::members(json);
            // A name with lone surrogates stays as it is written.
            let name = |name: crate::json::JsonStr<'_>| match name.decode() {
                Ok(name) => name.into_owned(),
                Err(_) => name.raw().to_owned(),
            };
            let mut members: Vec<_> = members
                .map(|(key, value)| (Cow::Owned(name(key)), value))
                .collect();
            append_members(out, &mut members);
        }
        Some(b'[') => {
            out.push(b'[');
            for (at, element) in reader::elements(json).enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                append_canonical(out, element);
            }
            out.push(b']');
        }
        Some(b'"') => match reader::as_str(json) {
            Some(text) => string::append(out, &text),
            None => out.extend_from_slice(json.as_bytes()),
        },
        _ => out.extend_from_slice(json.trim().as_bytes()),
    }
}

/// A tool that is not as it was pinned.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PinDrift<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The tool, by the server's own name.
    pub tool: &'a str,
    /// Its pin; `None` if it has none: it is new, or has another name than before.
    pub pinned: Option<&'a str>,
    /// The pin that it would have as it is.
    pub found: &'a str,
}

/// Middleware for one server ([`External::with`](super::super::External::with)) that passes on only tools that are as they were
/// pinned ([`tool_pin`]). Others are left out of lists, and calls of them are refused. A call goes over a connection on which the server
/// lists the tool as it was pinned: if the server has not listed the tool there before the call, or its list may have changed since, the tool
/// is looked up first. What a server lists on one connection says nothing of another, which may lead to another version while the server
/// is being replaced. If the connection is lost between the list and the call, the call fails. Add it behind a [`Retry`](super::Retry), so
/// that what is sent again is looked at again.
///
/// The same holds for a server on HTTP that ends its session, for example since it was started again: tools are looked up anew in the next
/// session, and a call that meets the end of the session fails.
///
/// A server may describe a tool differently in different revisions: pin it in the revision in which it is used.
#[derive(Clone)]
pub struct Pins {
    server: Arc<str>,
    pins: Arc<BTreeMap<String, String>>,
    drift: Arc<dyn Fn(&PinDrift<'_>) + Send + Sync>,
    /// Whether pinned tools are as they were, as far as they have been listed.
    listed: Arc<Listed>,
    /// What has been reported: tools with their pins.
    told: Arc<Mutex<BTreeSet<(String, String)>>>,
}

impl Pins {
    /// The pins of the tools of a server, by the server's own names. `drift` is told once of each tool that is not as it was pinned,
    /// and must not block.
    pub fn new(
        server: impl Into<Arc<str>>,
        pins: BTreeMap<String, String>,
        drift: impl Fn(&PinDrift<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            server: server.into(),
            pins: Arc::new(pins),
            drift: Arc::new(drift),
            listed: Arc::default(),
            told: Arc::default(),
        }
    }

    /// Whether a tool is as it was pinned. Reports it if not.
    fn admits(&self, tool: &str) -> bool {
        let Some(name) = reader::find(tool, "name").and_then(reader::as_str) else {
            return false;
        };
        let found = tool_pin(tool);
        let pinned = self.pins.get(&*name);
        if pinned == Some(&found) {
            return true;
        }
        let mut told = lock(&self.told);
        if told.len() >= MAX_TOLD {
            told.clear();
        }
        let is_new = told.insert((name.clone().into_owned(), found.clone()));
        drop(told);
        if is_new {
            let drift = PinDrift {
                server: &self.server,
                tool: &name,
                pinned: pinned.map(String::as_str),
                found: &found,
            };
            contain("a receiver of drift", || (self.drift)(&drift));
        }
        false
    }

    /// A page of the list of tools, without those that are not as they were pinned.
    fn page(&self, page: ChainResponse) -> ChainResponse {
        let (mut out, mut is_changed) = (vec![b'{'], false);
        for (name, value) in reader::members(page.result()) {
            if name != "tools" {
                push(&mut out, name.raw(), value);
                continue;
            }
            let count = reader::elements(value).count();
            let kept: Vec<_> = reader::elements(value)
                .filter(|tool| self.admits(tool))
                .collect();
            is_changed |= kept.len() < count;
            push(&mut out, name.raw(), &format!("[{}]", kept.join(",")));
        }
        out.push(b'}');
        match String::from_utf8(out) {
            Ok(text) if is_changed => ChainResponse::new(text).with(page.freshness()),
            _ => page,
        }
    }

    /// Which pinned tools of a page are as they were.
    fn judge(&self, request: &ChainRequest, page: &str) -> Page {
        let mut page = Page::judged(request, page, |tool| self.admits(tool));
        page.tools.retain(|name, _| self.pins.contains_key(&**name));
        page
    }
}

impl Middleware for Pins {
    fn keeps_lists(&self) -> bool {
        true
    }

    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        if request.direction() == RelayDirection::ToClient {
            return next.run(request);
        }
        match request.known_method() {
            Some(Method::ListTools) => Box::pin(async move {
                let next = next.bound().await?;
                let asked = self.listed.ask();
                let page = next.clone().run(request.clone()).await?;
                let judged = self.judge(&request, page.result());
                // The hop keeps the connection from ending meanwhile.
                self.listed.learn(next.connection(), asked, judged);
                Ok(self.page(page))
            }),
            Some(Method::CallTool) => Box::pin(async move {
                let tool = request.target().unwrap_or_default().into_owned();
                let why = match self.pins.contains_key(&tool) {
                    false => "has no pin",
                    true => {
                        let next = next.bound().await?;
                        let judge = |list: &_, page: &str| self.judge(list, page);
                        match self.listed.look_up(&tool, &request, &next, judge).await? {
                            Known::Listed(true) => return next.run(request).await,
                            Known::Listed(false) => "is not what was pinned",
                            Known::Missing | Known::Nothing => "is pinned, but not listed any more",
                        }
                    }
                };
                let server = &self.server;
                let why = format!("the tool {tool:?} of the server {server:?} {why}");
                Err(refusal(INVALID_PARAMS, why))
            }),
            _ => next.run(request),
        }
    }

    fn notification(&self, notification: ChainNotification) -> Option<ChainNotification> {
        if notification.method == Method::ToolsChanged.name() {
            self.listed.changed();
        }
        Some(notification)
    }

    fn connection_ended(&self, connection: u64) {
        self.listed.ended(connection);
    }
}

impl fmt::Debug for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pins")
            .field("server", &self.server)
            .field("pins", &self.pins)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::listed::MAX_PAGES;
    use super::*;
    use crate::error::RequestError;
    use crate::mcp::Revision;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn what_was_reported_is_remembered_up_to_a_number() {
        let pins = Pins::new("far", BTreeMap::new(), |_| {});
        for n in 0..3 * MAX_TOLD {
            pins.admits(&format!(r#"{{"name":"t{n}"}}"#));
            assert!(lock(&pins.told).len() <= MAX_TOLD);
        }
    }

    #[test]
    fn no_list_of_a_page_is_passed_on_unseen() {
        let pins = Pins::new("far", BTreeMap::new(), |_| {});
        let page = r#"{"tools":[{"name":"a"}],"tools":[]}"#;
        let page = pins.page(ChainResponse::new(page));
        assert_eq!(page.result(), r#"{"tools":[],"tools":[]}"#);
    }

    #[test]
    fn a_list_without_end_is_given_up() {
        let pins = BTreeMap::from([("a".to_owned(), String::new())]);
        let pins = Pins::new("far", pins, |_| {});
        let pages = std::sync::atomic::AtomicUsize::new(0);
        let next = NextHop::new(&[], RelayDirection::ToServer, |_| {
            let page = pages.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let page = format!(r#"{{"tools":[],"nextCursor":"{page}"}}"#);
            Box::pin(async move { Ok(ChainResponse::new(page)) })
        });
        let mut request = ChainRequest::question("tools/call", "{}", Revision::NEWEST).unwrap();
        request.direction = RelayDirection::ToServer;
        request.set_params(r#"{"name":"a"}"#).unwrap();
        let mut call = pins.request(request, next);
        let answer = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(answer, Poll::Ready(Err(RequestError::Peer(_)))));
        drop(call);
        assert_eq!(pages.into_inner(), MAX_PAGES);
    }

    #[test]
    fn a_pin_covers_what_a_model_is_told_however_it_is_written() {
        let pin =
            tool_pin(r#"{"name":"a","inputSchema":{"type":"object","a":[1,{"x":"\u00e9"}]}}"#);
        let same = r#"{ "inputSchema" : {"a": [1, {"x": "é"}], "type":"object"}, "name":"a","_meta":{},"icons":[] }"#;
        assert_eq!(tool_pin(same), pin);
        assert_eq!(pin.len(), "sha256:".len() + 64);
        for other in [
            r#"{"name":"b","inputSchema":{"type":"object","a":[1,{"x":"é"}]}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","a":[{"x":"é"},1]}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","a":[1,{"x":"é"}]},"outputSchema":{}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","a":[1,{"x":"é"}]},"annotations":{"readOnlyHint":true}}"#,
        ] {
            assert_ne!(tool_pin(other), pin, "{other}");
        }
    }
}
