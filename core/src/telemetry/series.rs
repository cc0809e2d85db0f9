//! Requests that are alike, of which one series of measurements is kept. Their number is bounded, whatever peers send: a name
//! gets a series only when a request that has it succeeds, if it is at most [`MAX_NAME_BYTES`] long, and only the first
//! [`MAX_NAMES`] names do.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hashbrown::{Equivalent, HashMap};

use super::names::OTHER;
use crate::connection::{NetworkTransport, ObservedRequest, RequestOutcome};
use crate::mcp::{Method, Revision};

/// How many names of tools, prompts and methods of extensions are told apart. All others count as `_OTHER`.
pub const MAX_NAMES: usize = 200;

/// The longest name that is told apart.
const MAX_NAME_BYTES: usize = 128;

/// What requests of one series have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Series<N, P> {
    /// Whether this side sends the requests.
    pub is_sent: bool,
    /// The method; a name of its own if no revision defines it.
    pub method: Result<Method, N>,
    /// The tool or the prompt.
    pub name: Option<N>,
    pub revision: Revision,
    pub transport: Option<NetworkTransport>,
    /// The protocol on top of the transport, and its version.
    pub protocol: Option<(&'static str, Option<&'static str>)>,
    /// The address and port of the server; none for requests that arrived.
    pub server: Option<(P, Option<u16>)>,
}

/// A series as a request names it.
pub(super) type Named<'a> = Series<Cow<'a, str>, &'a str>;
/// A series that is kept.
pub(super) type Kept = Series<Box<str>, Box<str>>;

impl<'a> Named<'a> {
    pub fn of(request: &ObservedRequest<'a>) -> Self {
        let (is_sent, channel) = (request.is_sent(), request.channel());
        let server = channel.filter(|_| is_sent).and_then(|it| it.peer.as_ref());
        Self {
            is_sent,
            method: request.known_method().ok_or_else(|| request.method()),
            name: request.tool().or_else(|| request.prompt()),
            revision: request.revision(),
            transport: channel.map(|channel| channel.transport),
            protocol: channel.and_then(|channel| channel.protocol),
            server: server.map(|(address, port)| (&**address, *port)),
        }
    }

    /// The same, to be kept; its names are replaced by [`OTHER`] unless `has` them.
    pub fn keep(&self, mut has: impl FnMut(&str) -> bool) -> Kept {
        let mut name = |name: &str| Box::from(if has(name) { name } else { OTHER });
        Kept {
            is_sent: self.is_sent,
            method: self.method.as_ref().map_err(|it| name(it)).copied(),
            name: self.name.as_deref().map(&mut name),
            revision: self.revision,
            transport: self.transport,
            protocol: self.protocol,
            server: self.server.map(|(address, port)| (address.into(), port)),
        }
    }
}

/// By what tells most series apart, since each request is looked up.
impl<N: Hash, P: Hash> Hash for Series<N, P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.method.hash(state);
        self.name.hash(state);
        self.server.hash(state);
    }
}

impl<N: AsRef<str>, P> Series<N, P> {
    /// The name of a span: the method, and the tool or prompt if there is one. Names of spans are few, whatever methods peers
    /// think of, so a method that no revision defines is [`OTHER`].
    pub fn title(&self) -> String {
        let method = self.method.as_ref().map_or(OTHER, |it| it.name());
        match &self.name {
            Some(name) => format!("{method} {}", name.as_ref()),
            None => method.to_owned(),
        }
    }

    /// The method on the wire.
    pub fn method(&self) -> &str {
        match &self.method {
            Ok(method) => method.name(),
            Err(name) => name.as_ref(),
        }
    }

    /// The name of the tool.
    pub fn tool(&self) -> Option<&str> {
        let name = self.name.as_ref()?;
        (self.method.as_ref().ok() == Some(&Method::CallTool)).then(|| name.as_ref())
    }

    /// The name of the prompt.
    pub fn prompt(&self) -> Option<&str> {
        let name = self.name.as_ref()?;
        (self.method.as_ref().ok() == Some(&Method::GetPrompt)).then(|| name.as_ref())
    }
}

impl Equivalent<Kept> for Named<'_> {
    fn equivalent(&self, kept: &Kept) -> bool {
        self.is_sent == kept.is_sent
            && self.method() == kept.method()
            && self.name.as_deref() == kept.name.as_deref()
            && self.revision == kept.revision
            && self.transport == kept.transport
            && self.protocol == kept.protocol
            && self.server
                == kept
                    .server
                    .as_ref()
                    .map(|(address, port)| (&**address, *port))
    }
}

/// A value for each series.
#[derive(Debug)]
pub(super) struct SeriesTable<T> {
    all: RwLock<HashMap<Kept, Arc<T>>>,
    names: Mutex<HashSet<Box<str>>>,
}

impl<T> Default for SeriesTable<T> {
    fn default() -> Self {
        Self {
            all: RwLock::default(),
            names: Mutex::default(),
        }
    }
}

impl<T> SeriesTable<T> {
    /// The value of a series that is known.
    pub fn find(&self, series: &Named<'_>) -> Option<Arc<T>> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.get(series).cloned()
    }

    /// The value for a request that has ended: of its series, or of the one for all names that are not told apart.
    pub fn admit(
        &self,
        series: &Kept,
        outcome: RequestOutcome,
        make: impl FnOnce(&Kept) -> T,
    ) -> Arc<T> {
        // A failure of a tool does not tell that there is such a tool.
        let is_good = outcome == RequestOutcome::Done;
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut has = |name: &str| {
            let is_known = names.contains(name);
            let is_short = name.len() <= MAX_NAME_BYTES;
            if !is_known && is_good && is_short && names.len() < MAX_NAMES {
                return names.insert(name.into());
            }
            is_known
        };
        let mut kept = series.clone();
        for name in [kept.method.as_mut().err(), kept.name.as_mut()]
            .into_iter()
            .flatten()
        {
            if !has(name) {
                *name = OTHER.into();
            }
        }
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        let value = all
            .entry(kept)
            .or_insert_with_key(|kept| Arc::new(make(kept)));
        value.clone()
    }

    /// Calls `see` with each series and its value.
    pub fn each(&self, mut see: impl FnMut(&Kept, &T)) {
        // Requests that end do not wait for what is done with each.
        let all: Vec<_> = {
            let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
            let each = all.iter();
            each.map(|(series, value)| (series.clone(), value.clone()))
                .collect()
        };
        all.iter().for_each(|(series, value)| see(series, value));
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    fn call(name: &str) -> Named<'_> {
        Named {
            is_sent: false,
            method: Ok(Method::CallTool),
            name: Some(name.into()),
            revision: Revision::NEWEST,
            transport: Some(NetworkTransport::Tcp),
            protocol: Some(("http", Some("1.1"))),
            server: None,
        }
    }

    #[test]
    fn a_series_is_found_by_what_a_request_says() {
        let hash = RandomState::new();
        let custom = Named {
            method: Err("own/method".into()),
            server: Some(("example.com", Some(443))),
            ..call("x")
        };
        for named in [call("x"), custom] {
            let kept = named.keep(|_| true);
            assert!(named.equivalent(&kept));
            assert_eq!(hash.hash_one(&named), hash.hash_one(&kept));
        }
    }

    #[test]
    fn names_are_told_apart_once_they_are_good_and_while_there_are_few() {
        let table = SeriesTable::<()>::default();
        let admit = |name: &str, outcome| {
            table.admit(&call(name).keep(|_| true), outcome, |_| ());
            table.find(&call(name)).is_some()
        };
        assert!(!admit("unknown", RequestOutcome::Failed(-32602, None)));
        assert!(!admit("unknown", RequestOutcome::ToolFailed));
        assert!(!admit(
            &"x".repeat(MAX_NAME_BYTES + 1),
            RequestOutcome::Done
        ));
        assert!(admit(&"x".repeat(MAX_NAME_BYTES), RequestOutcome::Done));
        for n in 1..MAX_NAMES {
            assert!(admit(&n.to_string(), RequestOutcome::Done));
        }
        assert!(!admit("one more", RequestOutcome::Done));
        let mut count = 0;
        table.each(|_, _| {
            assert!(table.all.try_write().is_ok(), "no request waits");
            count += 1;
        });
        assert_eq!(count, MAX_NAMES + 1, "all others are one");
        assert!(table.find(&call(OTHER)).is_some());
    }
}
