//! Requests that are alike, of which one series of measurements is kept. Their number is bounded, whatever peers send: a name
//! gets a series only when a request that has it succeeds, if it is at most [`MAX_NAME_BYTES`] long, and only the first
//! [`MAX_NAMES`] names do; and beyond [`MAX_SERIES`] series, for example of a client of very many servers, all requests count together.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher};
use std::iter;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hashbrown::{DefaultHashBuilder, Equivalent};

use super::names::OTHER;
use crate::connection::{NetworkTransport, ObservedRequest, RequestOutcome};
use crate::mcp::{Method, Revision, Side};

/// How many names of tools, prompts and methods of extensions are told apart. All others count as `_OTHER`.
pub const MAX_NAMES: usize = 200;

/// How many series there are, as many as OpenTelemetry's SDK keeps of one instrument. Further requests count together, as those that this side
/// sends and those that it receives.
pub const MAX_SERIES: usize = 2000;

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
    /// The address and port of the server; none at the server itself.
    pub server: Option<(P, Option<u16>)>,
    /// Whether it is of all requests beyond the most series, which have nothing else in common.
    pub is_overflow: bool,
}

/// A series as a request names it.
pub(super) type Named<'a> = Series<Cow<'a, str>, &'a str>;
/// A series that is kept.
pub(super) type Kept = Series<Box<str>, Box<str>>;

impl<'a> Named<'a> {
    pub fn of(request: &ObservedRequest<'a>) -> Self {
        let (is_sent, channel) = (request.is_sent(), request.channel());
        // The peer of a server is a client, of which there are any number.
        let is_to_server = is_sent && request.side() == Side::Client;
        let server = channel.filter(|_| is_to_server);
        let server = server.and_then(|it| it.peer.as_ref());
        let method = request.known_method();
        Self {
            is_sent,
            method: method.ok_or_else(|| request.method()),
            name: match method {
                Some(Method::CallTool | Method::GetPrompt) => request.name(),
                _ => None,
            },
            revision: request.revision(),
            transport: channel.map(|channel| channel.transport),
            protocol: channel.and_then(|channel| channel.protocol),
            server: server.map(|(address, port)| (&**address, *port)),
            is_overflow: false,
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
            is_overflow: self.is_overflow,
        }
    }
}

impl Kept {
    /// The series of all requests beyond the most series.
    fn overflow(is_sent: bool) -> Self {
        Self {
            is_sent,
            method: Err(OTHER.into()),
            name: None,
            revision: Revision::NEWEST,
            transport: None,
            protocol: None,
            server: None,
            is_overflow: true,
        }
    }
}

/// By what tells most series apart, since each request is looked up.
impl<N: Hash, P: Hash> Hash for Series<N, P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.method {
            Ok(method) => method.hash(state),
            Err(name) => name.hash(state),
        }
        self.name.iter().for_each(|name| name.hash(state));
        self.server.iter().for_each(|server| server.hash(state));
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
            && match (&self.method, &kept.method) {
                (Ok(own), Ok(kept)) => own == kept,
                (Err(own), Err(kept)) => **own == **kept,
                _ => false,
            }
            && self.name.as_deref() == kept.name.as_deref()
            && self.revision == kept.revision
            && self.transport == kept.transport
            && self.protocol == kept.protocol
            && self.server
                == kept
                    .server
                    .as_ref()
                    .map(|(address, port)| (&**address, *port))
            && self.is_overflow == kept.is_overflow
    }
}

/// How many lists the series of a [`SeriesTable`] are in.
const LISTS: usize = 256;

/// A value for each series. A series stays for good, so each request finds its own without a lock.
#[derive(Debug)]
pub(super) struct SeriesTable<T> {
    hash: DefaultHashBuilder,
    /// The series, by their hash.
    lists: Box<[Link<T>]>,
    known: Mutex<Known>,
}

/// What is told apart.
#[derive(Debug, Default)]
struct Known {
    names: HashSet<Box<str>>,
    series: usize,
}

/// The next series of a list, once there is one.
type Link<T> = OnceLock<Box<Node<T>>>;

#[derive(Debug)]
struct Node<T> {
    series: Kept,
    value: Arc<T>,
    next: Link<T>,
}

impl<T> Default for SeriesTable<T> {
    fn default() -> Self {
        Self {
            hash: DefaultHashBuilder::default(),
            lists: iter::repeat_with(OnceLock::new).take(LISTS).collect(),
            known: Mutex::default(),
        }
    }
}

/// The series of a list.
fn nodes<T>(list: &Link<T>) -> impl Iterator<Item = &Node<T>> {
    iter::successors(list.get(), |node| node.next.get()).map(|node| &**node)
}

impl<T> SeriesTable<T> {
    /// The value of a series that is known.
    pub fn find(&self, series: &Named<'_>) -> Option<&Arc<T>> {
        let mut list = nodes(self.list(series)?);
        let found = list.find(|node| series.equivalent(&node.series));
        found.map(|node| &node.value)
    }

    /// The list that the series is in, or will be.
    fn list(&self, series: &impl Hash) -> Option<&Link<T>> {
        let hash = self.hash.hash_one(series);
        self.lists.get(hash as usize % LISTS)
    }

    /// The value for a request that has ended: of its series, of the one for all names that are not told apart, or of the one for all
    /// requests beyond the most series.
    pub fn admit(
        &self,
        series: &Kept,
        outcome: RequestOutcome,
        make: impl FnOnce(&Kept) -> T,
    ) -> Arc<T> {
        // A failure of a tool does not tell that there is such a tool.
        let is_good = outcome == RequestOutcome::Done;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known {
            names,
            series: count,
        } = &mut *known;
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
        if let Some(value) = self.value(&kept) {
            return value;
        }
        if *count < MAX_SERIES {
            *count += 1;
        } else {
            kept = Kept::overflow(kept.is_sent);
            if let Some(value) = self.value(&kept) {
                return value;
            }
        }
        let value = Arc::new(make(&kept));
        self.add(kept, value.clone());
        value
    }

    /// The value of a series that is kept.
    fn value(&self, kept: &Kept) -> Option<Arc<T>> {
        let mut list = nodes(self.list(kept)?);
        let found = list.find(|it| it.series == *kept);
        found.map(|node| node.value.clone())
    }

    /// Appends a series to its list. Only who has locked `known` does.
    fn add(&self, series: Kept, value: Arc<T>) {
        let Some(mut end) = self.list(&series) else {
            return;
        };
        while let Some(node) = end.get() {
            end = &node.next;
        }
        let next = OnceLock::new();
        let _ = end.set(Box::new(Node {
            series,
            value,
            next,
        }));
    }

    /// Calls `see` with each series and its value.
    pub fn each(&self, mut see: impl FnMut(&Kept, &T)) {
        let all = self.lists.iter().flat_map(nodes);
        all.for_each(|node| see(&node.series, &node.value));
    }

    /// The sum of a figure over the series of requests that this side sends, or of those that it receives.
    pub fn sum(&self, is_sent: bool, of: impl Fn(&T) -> u64) -> u64 {
        let mut sum = 0;
        self.each(|series, value| {
            sum += if series.is_sent == is_sent {
                of(value)
            } else {
                0
            }
        });
        sum
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
            is_overflow: false,
        }
    }

    #[test]
    fn a_client_of_very_many_servers_adds_a_bounded_number_of_series() {
        let table = SeriesTable::<()>::default();
        let address = |n: usize| format!("{n}.example.com");
        for n in 0..MAX_SERIES + 10 {
            for is_sent in [true, false] {
                let address = address(n);
                let server = Some((&*address, None)).filter(|_| is_sent);
                let own = Named {
                    is_sent,
                    server,
                    ..call("x")
                };
                table.admit(&own.keep(|_| true), RequestOutcome::Lost, |_| ());
            }
        }
        let (mut count, mut overflows) = (0, 0);
        table.each(|series, ()| {
            count += 1;
            overflows += usize::from(series.is_overflow);
        });
        // What came first of those that are received has a series of its own, and all the rest of them, too.
        assert_eq!((count, overflows), (MAX_SERIES + 1, 1));
        for (n, is_known) in [(0, true), (MAX_SERIES + 9, false)] {
            let address = address(n);
            let own = Named {
                is_sent: true,
                server: Some((&*address, None)),
                ..call(OTHER)
            };
            assert_eq!(table.find(&own).is_some(), is_known, "{n}");
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
        table.each(|_, _| count += 1);
        assert_eq!(count, MAX_NAMES + 1, "all others are one");
        assert!(table.find(&call(OTHER)).is_some());
    }
}
