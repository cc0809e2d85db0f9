//! A prefix for the names and URIs of a server, so that clients tell them from those of others.

use std::fmt;

use super::middleware::{
    ChainAnswer, ChainNotification, ChainRequest, ChainResponse, Middleware, NextHop,
    RelayDirection, refusal,
};
use super::params::{json_text, push};
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::{ErrorKind, Method};

/// Middleware that gives a prefix to what a server offers: clients call the tool `log` of a server with the prefix `git` by the
/// name `git_log`, and read its resource `file:///a` at `file://git//a`.
///
/// Names of tools and prompts become `PREFIX_NAME`. URIs, and templates of URIs, get the prefix as their first segment; those
/// without `://` get it before them: `urn:x` becomes `via:PREFIX/urn:x`, and `{+uri}` becomes `via:PREFIX/{+uri}`. Links in
/// results, subscriptions and completion have the same names. A name without the prefix is unknown, and never reaches the
/// server. Two names are never made the same. `server.mount` of the Python and Node packages makes the same names, but leaves
/// URIs without `://` as they are.
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
pub struct Prefix(Box<str>);

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
enum Kind {
    Name,
    Uri,
}

/// Names of members on the way to a place; `*` stands for each element of an array.
type Place = (&'static [&'static str], Kind);

/// The places in the params of a client's request.
fn asked(method: Option<Method>) -> &'static [Place] {
    match method {
        Some(Method::CallTool | Method::GetPrompt) => &[(&["name"], Kind::Name)],
        Some(Method::ReadResource | Method::Subscribe | Method::Unsubscribe) => {
            &[(&["uri"], Kind::Uri)]
        }
        Some(Method::Complete) => &[(&["ref", "name"], Kind::Name), (&["ref", "uri"], Kind::Uri)],
        Some(Method::Listen) => &[(&["notifications", "resourceSubscriptions", "*"], Kind::Uri)],
        _ => &[],
    }
}

/// The places in the result of a request.
fn answered(method: Option<Method>) -> &'static [Place] {
    match method {
        Some(Method::ListTools) => &[(&["tools", "*", "name"], Kind::Name)],
        Some(Method::ListPrompts) => &[(&["prompts", "*", "name"], Kind::Name)],
        Some(Method::ListResources) => &[(&["resources", "*", "uri"], Kind::Uri)],
        Some(Method::ListResourceTemplates) => {
            &[(&["resourceTemplates", "*", "uriTemplate"], Kind::Uri)]
        }
        Some(Method::ReadResource) => &[(&["contents", "*", "uri"], Kind::Uri)],
        // Links, and resources within the content.
        Some(Method::CallTool | Method::TaskResult) => &[
            (&["content", "*", "uri"], Kind::Uri),
            (&["content", "*", "resource", "uri"], Kind::Uri),
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
        Some(Method::SubscriptionAcknowledged) => {
            &[(&["notifications", "resourceSubscriptions", "*"], Kind::Uri)]
        }
        _ => &[],
    }
}

impl Prefix {
    /// A prefix of ASCII letters, digits, `-` and `_`.
    ///
    /// # Errors
    /// [`RequestError::Misuse`] for any other text, and for an empty one.
    pub fn new(prefix: impl Into<Box<str>>) -> Result<Self, RequestError> {
        let prefix = prefix.into();
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        match !prefix.is_empty() && prefix.bytes().all(is_fit) {
            true => Ok(Self(prefix)),
            false => Err(RequestError::Misuse(
                "a prefix has ASCII letters, digits, - and _, and at least one of them",
            )),
        }
    }

    /// The name or URI that clients see for the server's own.
    fn outer(&self, kind: Kind, inner: &str) -> String {
        match (kind, split(inner)) {
            (Kind::Name, _) => format!("{}_{inner}", self.0),
            (Kind::Uri, Some((scheme, rest))) => format!("{scheme}://{}/{rest}", self.0),
            (Kind::Uri, None) => format!("{VIA}{}/{inner}", self.0),
        }
    }

    /// The server's own name or URI for one that a client sends; `None` if it is not the server's.
    fn inner(&self, kind: Kind, outer: &str) -> Option<String> {
        let own =
            |text: &str, end| Some(text.strip_prefix(&*self.0)?.strip_prefix(end)?.to_owned());
        match (kind, split(outer)) {
            (Kind::Name, _) => own(outer, '_'),
            (Kind::Uri, Some((scheme, rest))) => Some(format!("{scheme}://{}", own(rest, '/')?)),
            (Kind::Uri, None) => own(outer.strip_prefix(VIA)?, '/'),
        }
    }

    fn told(&self, places: &[Place], text: &str) -> String {
        let edited = edited(places, text, &mut |kind, inner| Ok(self.outer(kind, inner)));
        edited.unwrap_or_else(|()| text.to_owned())
    }
}

/// The JSON text with other strings at these places; every other byte stays, but for space between tokens.
///
/// # Errors
/// The first one of `map`.
fn edited<E>(
    places: &[Place],
    text: &str,
    map: &mut impl FnMut(Kind, &str) -> Result<String, E>,
) -> Result<String, E> {
    let mut text = text.to_owned();
    for (path, kind) in places {
        text = edited_at(path, &text, &mut |it| map(*kind, it))?;
    }
    Ok(text)
}

fn edited_at<E>(
    path: &[&str],
    value: &str,
    map: &mut impl FnMut(&str) -> Result<String, E>,
) -> Result<String, E> {
    let Some((step, rest)) = path.split_first() else {
        return match reader::as_str(value) {
            Some(text) => Ok(json_text(&map(&text)?)),
            None => Ok(value.to_owned()),
        };
    };
    match (*step, value.as_bytes().first()) {
        ("*", Some(b'[')) => {
            let elements: Result<Vec<_>, _> = reader::elements(value)
                .map(|element| edited_at(rest, element, map))
                .collect();
            Ok(format!("[{}]", elements?.join(",")))
        }
        (name, Some(b'{')) => {
            let mut out = vec![b'{'];
            for (member, value) in reader::members(value) {
                match member == name {
                    true => push(&mut out, member.raw(), &edited_at(rest, value, map)?),
                    false => push(&mut out, member.raw(), value),
                }
            }
            out.push(b'}');
            Ok(String::from_utf8(out).unwrap_or_default())
        }
        _ => Ok(value.to_owned()),
    }
}

impl Middleware for Prefix {
    fn request<'a>(&'a self, mut request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        if request.direction() == RelayDirection::ToClient {
            return next.run(request);
        }
        Box::pin(async move {
            let (method, revision) = (request.known_method(), request.revision());
            let places = asked(method);
            if !places.is_empty() {
                let mut inner = |kind, outer: &str| {
                    let unknown = || {
                        let what = match (kind, method) {
                            (Kind::Uri, _) => ErrorKind::ResourceNotFound,
                            (Kind::Name, Some(Method::CallTool)) => ErrorKind::ToolNotFound,
                            (Kind::Name, _) => ErrorKind::PromptNotFound,
                        };
                        let why = match kind {
                            Kind::Name => format!("{outer:?} does not begin with \"{}_\"", self.0),
                            Kind::Uri => {
                                format!("the first segment of {outer:?} is not {:?}", &*self.0)
                            }
                        };
                        refusal(what.code(revision), why)
                    };
                    self.inner(kind, outer).ok_or_else(unknown)
                };
                let params = edited(places, request.params(), &mut inner)?;
                request.set_params(&params)?;
            }
            let response = next.run(request).await?;
            let places = answered(method);
            match places.is_empty() {
                true => Ok(response),
                false => Ok(ChainResponse::new(self.told(places, response.result()))),
            }
        })
    }

    fn notification(&self, mut notification: ChainNotification) -> Option<ChainNotification> {
        let places = match notification.direction {
            RelayDirection::ToServer => &[],
            RelayDirection::ToClient => told(Method::parse(&notification.method)),
        };
        if let (false, Some(params)) = (places.is_empty(), &notification.params) {
            notification.params = Some(self.told(places, params));
        }
        Some(notification)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Prefix").field(&self.0).finish()
    }
}
