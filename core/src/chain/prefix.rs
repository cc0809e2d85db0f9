//! A prefix for the names and URIs of a server, so that clients tell them from those of others.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use super::middleware::{
    ChainAnswer, ChainNotification, ChainRequest, ChainResponse, Middleware, NextHop,
    RelayDirection, refusal,
};
use super::params::{json_text, push, with_meta};
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::code::INVALID_PARAMS;
use crate::mcp::{ErrorKind, Method, Revision, meta};

/// A prefix for what a server offers: clients call the tool `log` of a server with the prefix `git` by the name `git_log`, and
/// read its resource `file:///a` at `file://git//a`. It is given to [`External::prefix`](super::External::prefix), or it is
/// middleware among others.
///
/// Names of tools and prompts become `PREFIX_NAME`, as do ids of tasks. URIs, and templates of URIs, get the prefix as their first segment; those
/// without `://` get it before them: `urn:x` becomes `via:prefix/urn:x`, and `{+uri}` becomes `via:prefix/{+uri}`. Parsers of URLs
/// take that segment for a host and write it in lower case, so it is in lower case here, and found in either case. Links in
/// results, subscriptions and completion have the same names. A name without the prefix is unknown, and never reaches the
/// server. Two names are never made the same. A tool whose name would have more than 128 bytes is left out of lists, which name it in
/// their `_meta` as `dev.mcpbolt/tooLong`, with a warning in the log. `server.mount` of the Python and Node packages makes the same names, but leaves
/// URIs without `://` as they are and writes the prefix in URIs as it is given.
///
/// ```
/// use mcpbolt::chain::{External, Front, Prefix};
/// use mcpbolt::server::Server;
///
/// let server = Server::builder("git", "1.0.0").build()?;
/// let front = Front::new(External::server("git", &server)).with(Prefix::new("git")?);
/// # let _ = front;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Prefix(Box<str>);

/// The most bytes of a tool's name.
const MAX_NAME_LEN: usize = 128;

/// `_meta` key of the tools that a list lacks because their names are too long with the prefix.
pub(super) const TOO_LONG: &str = "dev.mcpbolt/tooLong";

/// Logs that a tool is left out.
#[cfg_attr(
    not(feature = "tracing"),
    allow(unused_variables, reason = "there is no log")
)]
fn warn(prefix: &str, tool: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        prefix,
        tool,
        "the name of a tool has more than 128 bytes with the prefix: the tool is left out of lists"
    );
}

/// The scheme of URIs that have no place for a prefix of their own.
const VIA: &str = "via:";

/// A URI around its `://`; `None` if there is no place for a prefix behind it.
fn split(uri: &str) -> Option<(&str, &str)> {
    let is_via = uri
        .strip_prefix(VIA)
        .is_some_and(|rest| !rest.starts_with("//"));
    uri.split_once("://").filter(|_| !is_via)
}

/// The kind of text at a place of a message.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Name,
    Uri,
    /// The id of a task.
    Task,
}

/// Names of members on the way to a place; `*` stands for each element of an array.
type Place = (&'static [&'static str], Kind);

/// The places in the params of a client's request.
fn asked(method: Option<Method>) -> &'static [Place] {
    match method {
        Some(Method::CallTool | Method::GetPrompt) => &[(&["name"], Kind::Name)],
        Some(
            Method::ReadResource
            | Method::Subscribe
            | Method::Unsubscribe
            | Method::GetSkill
            | Method::ReadDirectory,
        ) => &[(&["uri"], Kind::Uri)],
        Some(Method::Complete) => &[(&["ref", "name"], Kind::Name), (&["ref", "uri"], Kind::Uri)],
        Some(Method::Listen) => &[
            (&["notifications", "resourceSubscriptions", "*"], Kind::Uri),
            (&["notifications", "taskIds", "*"], Kind::Task),
        ],
        Some(Method::GetTask | Method::CancelTask | Method::TaskResult | Method::UpdateTask) => {
            &[(&["taskId"], Kind::Task)]
        }
        _ => &[],
    }
}

/// Whether requests of a method name something of a server.
pub(super) fn has_names(method: Option<Method>) -> bool {
    !asked(method).is_empty()
}

/// What a request of a client names first.
pub(super) fn target(method: Option<Method>, params: &str) -> Option<(Kind, String)> {
    asked(method).iter().find_map(|(path, kind)| {
        let named = reader::find_path(params, path).and_then(reader::as_str);
        Some((*kind, named?.into_owned()))
    })
}

/// The error for a name that no server has.
pub(super) fn unknown(
    kind: Kind,
    method: Option<Method>,
    revision: Revision,
    why: String,
) -> RequestError {
    let code = match (kind, method) {
        (Kind::Uri, _) => ErrorKind::ResourceNotFound.code(revision),
        (Kind::Name, Some(Method::CallTool)) => ErrorKind::ToolNotFound.code(revision),
        (Kind::Name, _) => ErrorKind::PromptNotFound.code(revision),
        (Kind::Task, _) => INVALID_PARAMS,
    };
    refusal(code, why)
}

/// The places in the result of a request.
fn answered(method: Option<Method>) -> &'static [Place] {
    match method {
        Some(Method::ListTools) => &[(&["tools", "*", "name"], Kind::Name)],
        Some(Method::ListPrompts) => &[(&["prompts", "*", "name"], Kind::Name)],
        Some(Method::ListSkills) => &[
            (&["skills", "*", "uri"], Kind::Uri),
            (&["skills", "*", "resources", "*", "uri"], Kind::Uri),
        ],
        Some(Method::GetSkill) => &[
            (&["skill", "uri"], Kind::Uri),
            (&["skill", "resources", "*", "uri"], Kind::Uri),
        ],
        Some(Method::ListResources | Method::ReadDirectory) => {
            &[(&["resources", "*", "uri"], Kind::Uri)]
        }
        Some(Method::ListResourceTemplates) => {
            &[(&["resourceTemplates", "*", "uriTemplate"], Kind::Uri)]
        }
        Some(Method::ReadResource) => &[(&["contents", "*", "uri"], Kind::Uri)],
        // Links, and resources within the content.
        Some(Method::CallTool | Method::TaskResult) => &[
            (&["content", "*", "uri"], Kind::Uri),
            (&["content", "*", "resource", "uri"], Kind::Uri),
            (&["task", "taskId"], Kind::Task),
            (&["taskId"], Kind::Task),
            (&["_meta", meta::RELATED_TASK, "taskId"], Kind::Task),
        ],
        Some(Method::ListTasks) => &[(&["tasks", "*", "taskId"], Kind::Task)],
        Some(Method::GetTask | Method::CancelTask | Method::UpdateTask) => &[
            (&["taskId"], Kind::Task),
            (&["result", "content", "*", "uri"], Kind::Uri),
            (&["result", "content", "*", "resource", "uri"], Kind::Uri),
        ],
        Some(Method::GetPrompt) => &[
            (&["messages", "*", "content", "uri"], Kind::Uri),
            (&["messages", "*", "content", "resource", "uri"], Kind::Uri),
        ],
        _ => &[],
    }
}

/// The places in the params of a server's notification.
fn told(method: Option<Method>) -> &'static [Place] {
    match method {
        Some(Method::ResourceUpdated) => &[(&["uri"], Kind::Uri)],
        Some(Method::SubscriptionAcknowledged) => &[
            (&["notifications", "resourceSubscriptions", "*"], Kind::Uri),
            (&["notifications", "taskIds", "*"], Kind::Task),
        ],
        Some(Method::TaskStatus | Method::Tasks) => &[(&["taskId"], Kind::Task)],
        _ => &[],
    }
}

impl FromStr for Prefix {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        Self::new(text)
    }
}

impl Prefix {
    /// A prefix of ASCII letters, digits, `-` and `_`.
    ///
    /// # Errors
    /// [`RequestError::Misuse`] for any other text, for an empty one, and for what parsers of URLs change or refuse where a
    /// host stands, as in `http://PREFIX/a`: `localhost` in any case, numbers (`7`, `0x7`), and what begins with `xn--`.
    pub fn new(prefix: impl Into<Box<str>>) -> Result<Self, RequestError> {
        let prefix = prefix.into();
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if prefix.is_empty() || !prefix.bytes().all(is_fit) {
            return Err(RequestError::Misuse(
                "a prefix has ASCII letters, digits, - and _, and at least one of them",
            ));
        }
        let host = prefix.to_ascii_lowercase();
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if digits(&host) || host.strip_prefix("0x").is_some_and(hexadecimal) {
            return Err(RequestError::Misuse(
                "a number is no prefix: parsers of URLs take it for an address of a host; add a letter before it",
            ));
        }
        if host == "localhost" || host.starts_with("xn--") {
            return Err(RequestError::Misuse(
                "localhost, and what begins with xn--, is no prefix: in a URI it would be another host; choose another word",
            ));
        }
        Ok(Self(prefix))
    }

    /// The name or URI that clients see for the server's own.
    fn outer(&self, kind: Kind, inner: &str) -> String {
        match (kind, split(inner)) {
            (Kind::Name | Kind::Task, _) => format!("{}_{inner}", self.0),
            (Kind::Uri, Some((scheme, rest))) => format!("{scheme}://{}/{rest}", self.segment()),
            (Kind::Uri, None) => format!("{VIA}{}/{inner}", self.segment()),
        }
    }

    /// The first segment of URIs: parsers of URLs take it for a host, whose case they do not keep.
    fn segment(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// The server's own name or URI for one that a client sends; `None` if it is not the server's.
    pub(super) fn inner(&self, kind: Kind, outer: &str) -> Option<String> {
        let behind = |text: &str| {
            let (first, rest) = text.split_once('/')?;
            let is_own = first.eq_ignore_ascii_case(&self.0);
            is_own.then(|| rest.to_owned())
        };
        match (kind, split(outer)) {
            (Kind::Name | Kind::Task, _) => {
                let rest = outer.strip_prefix(&*self.0)?.strip_prefix('_');
                rest.map(str::to_owned)
            }
            (Kind::Uri, Some((scheme, rest))) => Some(format!("{scheme}://{}", behind(rest)?)),
            (Kind::Uri, None) => behind(outer.strip_prefix(VIA)?),
        }
    }

    /// Takes off a list the tools whose names are too long with the prefix: clients refuse such names (R-NAM-01).
    fn without_long(&self, page: &str) -> Option<String> {
        fn name(tool: &str) -> Option<std::borrow::Cow<'_, str>> {
            reader::find(tool, "name").and_then(reader::as_str)
        }
        let is_long = |tool: &&str| {
            let name = name(tool);
            name.is_some_and(|name| self.0.len() + 1 + name.len() > MAX_NAME_LEN)
        };
        let tools = reader::find(page, "tools")?;
        let (long, fit): (Vec<_>, Vec<_>) = reader::elements(tools).partition(is_long);
        if long.is_empty() {
            return None;
        }
        let long: Vec<_> = long
            .into_iter()
            .filter_map(|tool| {
                let name = name(tool)?;
                warn(&self.0, &name);
                Some(json_text(&self.outer(Kind::Name, &name)))
            })
            .collect();
        let mut out = vec![b'{'];
        for (name, value) in reader::members(page) {
            match name == "tools" {
                true => push(&mut out, name.raw(), &format!("[{}]", fit.join(","))),
                false => push(&mut out, name.raw(), value),
            }
        }
        out.push(b'}');
        let page = String::from_utf8(out).unwrap_or_default();
        let long = format!("[{}]", long.join(","));
        Some(with_meta(&page, TOO_LONG, Some(&long)))
    }

    /// The text with the prefix at these places; `None` if it has nothing there.
    fn told(&self, places: &[Place], text: &str) -> Option<String> {
        let mut outer = |kind, inner: &str| Ok::<_, Infallible>(self.outer(kind, inner));
        let Ok(edited) = edited(places, text, &mut outer);
        edited
    }
}

/// The JSON text with other strings at these places, which do not overlap; every other byte stays. `None` if there are no
/// strings.
///
/// # Errors
/// The first one of `map`.
fn edited<E>(
    places: &[Place],
    text: &str,
    map: &mut impl FnMut(Kind, &str) -> Result<String, E>,
) -> Result<Option<String>, E> {
    let mut edits = Vec::new();
    for (path, kind) in places {
        each_at(path, text, &mut |value| {
            if let Some(string) = reader::as_str(value) {
                let at = value.as_ptr().addr() - text.as_ptr().addr();
                edits.push((at, at + value.len(), json_text(&map(*kind, &string)?)));
            }
            Ok(())
        })?;
    }
    if edits.is_empty() {
        return Ok(None);
    }
    edits.sort_unstable_by_key(|(at, ..)| *at);
    let longer: usize = edits.iter().map(|(.., string)| string.len()).sum();
    let (mut out, mut done) = (String::with_capacity(text.len() + longer), 0);
    for (at, end, string) in edits {
        out.push_str(text.get(done..at).unwrap_or_default());
        out.push_str(&string);
        done = end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Ok(Some(out))
}

/// Calls `found` with each value at a path, a part of `value`.
fn each_at<'a, E>(
    path: &[&str],
    value: &'a str,
    found: &mut impl FnMut(&'a str) -> Result<(), E>,
) -> Result<(), E> {
    let Some((step, rest)) = path.split_first() else {
        return found(value);
    };
    match (*step, value.as_bytes().first()) {
        ("*", Some(b'[')) => {
            reader::elements(value).try_for_each(|element| each_at(rest, element, found))
        }
        (name, Some(b'{')) => reader::members(value)
            .filter(|(member, _)| *member == name)
            .try_for_each(|(_, value)| each_at(rest, value, found)),
        _ => Ok(()),
    }
}

impl Prefix {
    /// Takes the prefix off a request of a client.
    ///
    /// # Errors
    /// If it names what the server does not have.
    pub(super) fn enter(&self, request: &mut ChainRequest) -> Result<(), RequestError> {
        let (method, revision) = (request.known_method(), request.revision());
        let places = asked(method);
        if places.is_empty() {
            return Ok(());
        }
        let mut inner = |kind, outer: &str| {
            let why = || match kind {
                Kind::Uri => format!("the first segment of {outer:?} is not {:?}", self.segment()),
                Kind::Name | Kind::Task => {
                    format!("{outer:?} does not begin with \"{}_\"", self.0)
                }
            };
            let inner = self.inner(kind, outer);
            inner.ok_or_else(|| unknown(kind, method, revision, why()))
        };
        match edited(places, request.params(), &mut inner)? {
            Some(params) => request.set_params(&params),
            None => Ok(()),
        }
    }

    /// Puts the prefix on the answer.
    pub(super) fn leave(&self, method: Option<Method>, answer: ChainResponse) -> ChainResponse {
        let places = answered(method);
        if places.is_empty() {
            return answer;
        }
        let fit = (method == Some(Method::ListTools)).then(|| self.without_long(answer.result()));
        let page = fit.flatten();
        let told = self.told(places, page.as_deref().unwrap_or(answer.result()));
        match told.or(page) {
            Some(result) => ChainResponse::new(result),
            None => answer.with(None),
        }
    }

    /// Puts the prefix on a notification of the server.
    pub(super) fn tell(&self, notification: &mut ChainNotification) {
        let places = told(Method::parse(&notification.method));
        let params = notification.params.as_deref();
        if let Some(told) = params.and_then(|params| self.told(places, params)) {
            notification.params = Some(told);
        }
    }

    /// Whether no name or URI could be one under either prefix. Case does not tell URIs apart.
    pub(super) fn is_apart_from(&self, other: &Self) -> bool {
        let begins = |one: &str, with: &str| {
            let rest = one.strip_prefix(with);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        let (one, other) = (self.segment(), other.segment());
        !begins(&one, &other) && !begins(&other, &one)
    }
}

impl Middleware for Prefix {
    fn request<'a>(&'a self, mut request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        if request.direction() == RelayDirection::ToClient {
            return next.run(request);
        }
        Box::pin(async move {
            let method = request.known_method();
            self.enter(&mut request)?;
            Ok(self.leave(method, next.run(request).await?))
        })
    }

    fn notification(&self, mut notification: ChainNotification) -> Option<ChainNotification> {
        if notification.direction == RelayDirection::ToClient {
            self.tell(&mut notification);
        }
        Some(notification)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Prefix").field(&self.0).finish()
    }
}
