//! A cache of tool results: repeated calls get the stored result.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::arguments::FromArguments;
use super::builder::Builder;
use super::cache::CacheScope;
use super::content::ToolResult;
use super::context::Context;
use super::definition::Tool;
use super::output::{IntoToolResult, Output};
use crate::connection::{Budget, Held};
use crate::json::writer;
use crate::limits::{CHECK_HERE_BYTES, MAX_KEPT_BYTES, MAX_KEPT_RESULTS, later};

/// A cache of tool results: see [`Builder::kept_tool`]. Cheap to clone; a handler that changes the
/// underlying data calls [`forget`](Self::forget). `T` is the result type of a custom executor.
pub struct Results<T = ToolResult> {
    ttl: Duration,
    scope: CacheScope,
    kept: Arc<Mutex<Entries<T>>>,
}

impl<T> Clone for Results<T> {
    fn clone(&self) -> Self {
        Self {
            kept: self.kept.clone(),
            ..*self
        }
    }
}

/// The cache key: the tool, its arguments and, for private results, the caller.
type Key = Arc<(String, String, Option<String>)>;

/// The cache entries, within the limits; the oldest is removed first.
struct Entries<T> {
    results: HashMap<Key, One<T>>,
    /// Keys in order of insertion. Replaced entries remain here.
    order: VecDeque<(Instant, Key)>,
    /// Total size of all entries.
    bytes: usize,
    /// The total size, counted in the budget of a server, once that is known.
    held: Option<Held>,
    /// Number of invalidations so far.
    forgotten: u64,
}

struct One<T> {
    until: Instant,
    result: T,
    bytes: usize,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self {
            results: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            held: None,
            forgotten: 0,
        }
    }
}

impl<T: Clone> Entries<T> {
    fn find(&self, key: &Key, now: Instant) -> Option<T> {
        let one = self.results.get(key)?;
        (now < one.until).then(|| one.result.clone())
    }

    /// Stores a result of `held` bytes.
    fn keep(&mut self, key: Key, until: Instant, result: T, held: usize) {
        let bytes = key.0.len() + key.1.len() + held;
        if bytes > MAX_KEPT_BYTES {
            return;
        }
        self.remove(&key);
        while self.order.len() >= MAX_KEPT_RESULTS || self.bytes + bytes > MAX_KEPT_BYTES {
            if !self.remove_oldest() {
                break;
            }
        }
        while !self.has_room(bytes) {
            if !self.remove_oldest() {
                return;
            }
        }
        self.bytes += bytes;
        self.order.push_back((until, key.clone()));
        let one = One {
            until,
            result,
            bytes,
        };
        self.results.insert(key, one);
    }

    /// Returns whether the server's budget has room for `bytes` more, and if so counts them.
    fn has_room(&mut self, bytes: usize) -> bool {
        let wanted = self.bytes + bytes;
        self.held.as_mut().is_none_or(|held| held.try_keep(wanted))
    }

    fn count(&mut self) {
        if let Some(held) = &mut self.held {
            held.keep(self.bytes);
        }
    }

    /// Returns whether there was an entry to remove.
    fn remove_oldest(&mut self) -> bool {
        let Some((until, oldest)) = self.order.pop_front() else {
            return false;
        };
        let found = self.results.get(&oldest);
        if found.is_some_and(|one| one.until == until) {
            self.remove(&oldest);
        }
        true
    }

    fn remove(&mut self, key: &Key) {
        if let Some(one) = self.results.remove(key) {
            self.bytes -= one.bytes;
            self.count();
        }
    }

    fn forget(&mut self, is_one: impl Fn(&Key) -> bool) {
        self.forgotten += 1;
        self.order.retain(|(_, key)| !is_one(key));
        let bytes = &mut self.bytes;
        self.results.retain(|key, one| {
            let stays = !is_one(key);
            if !stays {
                *bytes -= one.bytes;
            }
            stays
        });
        self.count();
    }
}

impl<T: Clone> Results<T> {
    /// Creates an empty cache whose entries live for `ttl`. Entries of
    /// [`Public`](CacheScope::Public) scope are shared by all callers; private entries belong to
    /// one caller and are not stored if the caller is unknown. Calls with more than
    /// [`CHECK_HERE_BYTES`] of arguments are not cached. The cache holds at most
    /// [`MAX_KEPT_RESULTS`] entries with [`MAX_KEPT_BYTES`] in total and removes the oldest first.
    pub fn new(ttl: Duration, scope: CacheScope) -> Self {
        Self {
            ttl,
            scope,
            kept: Arc::default(),
        }
    }

    /// Counts the entries in the budget of a server; when the budget is full, the oldest entries
    /// are removed. [`Builder::kept_tool`] calls this itself. Only the first call has an effect.
    pub fn count_in(&self, budget: &Arc<Budget>) {
        self.with(|kept| {
            if kept.held.is_none() {
                kept.held = Some(Held::of(budget));
                kept.count();
            }
        });
    }

    /// Removes the results of a tool. Results of calls that are still running are not stored.
    pub fn forget(&self, tool: &str) {
        self.with(|kept| kept.forget(|key| key.0 == tool));
    }

    /// Removes the results of all tools. Results of calls that are still running are not stored.
    pub fn forget_all(&self) {
        self.with(|kept| kept.forget(|_| true));
    }

    /// Prepares the lookup of a call, for a custom executor: the tool, its arguments (raw JSON) and
    /// the caller, if known. `None` when the result must not be cached.
    pub fn ask(&self, tool: &str, given: &str, who: Option<&str>) -> Option<KeptCall<T>> {
        let whose = match self.scope {
            CacheScope::Public => None,
            CacheScope::Private => Some(who?.to_owned()),
        };
        if given.len() > CHECK_HERE_BYTES {
            return None;
        }
        let mut arguments = Vec::new();
        writer::append_compact(&mut arguments, given);
        let arguments = String::from_utf8(arguments).ok()?;
        Some(KeptCall {
            results: self.clone(),
            key: Arc::new((tool.to_owned(), arguments, whose)),
            forgotten: self.with(|kept| kept.forgotten),
        })
    }

    fn with<R>(&self, act: impl FnOnce(&mut Entries<T>) -> R) -> R {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A call whose result can be cached. See [`Results::ask`].
pub struct KeptCall<T = ToolResult> {
    results: Results<T>,
    key: Key,
    /// The number of invalidations when the call came.
    forgotten: u64,
}

impl<T: Clone> KeptCall<T> {
    /// Returns the stored result of the same call.
    pub fn found(&self) -> Option<T> {
        let now = Instant::now();
        self.results.with(|kept| kept.find(&self.key, now))
    }

    /// Stores the result, of this size in bytes, unless something was invalidated since the call
    /// came: the result may show the state from before.
    pub fn keep(&self, result: T, bytes: usize) {
        let until = later(Instant::now(), self.results.ttl);
        self.results.with(|kept| {
            if kept.forgotten == self.forgotten {
                kept.keep(self.key.clone(), until, result, bytes);
            }
        });
    }
}

impl<T> fmt::Debug for KeptCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptCall").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Results<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results")
            .field("ttl", &self.ttl)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Adds a tool whose results are cached: until an entry expires or is forgotten, the same call
    /// gets the same answer without running the handler. Failures and results that do not fit the
    /// output schema are not cached. `mcp.get_schema` shows the lifetime as
    /// `"cache": {"ttl_ms": …}`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use mcpbolt::server::{Arguments, CacheScope, Results, Server, Tool};
    ///
    /// let results = Results::new(Duration::from_secs(60), CacheScope::Public);
    /// let stale = results.clone();
    /// let server = Server::builder("shop", "1.0.0")
    ///     .kept_tool(Tool::new("price.get"), &results, |_: Arguments, _| async { "7 €" })
    ///     .tool(Tool::new("price.update"), move |_: Arguments, _| {
    ///         stale.forget("price.get");
    ///         async { "updated" }
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn kept_tool<A, F, R>(
        self,
        tool: Tool,
        results: &Results,
        handler: impl Fn(A, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: FromArguments,
        F: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        let results = results.clone();
        let output = Output::of(&tool);
        let tool = tool.kept_for(results.ttl);
        self.tool(tool, move |arguments: A, context: Context| {
            let output = output.clone();
            let asked = context.message().and_then(|message| {
                let given = message.arguments().unwrap_or("{}");
                results.count_in(&context.connection().config().budget);
                results.ask(&message.name()?, given, context.principal())
            });
            let made = match asked.as_ref().and_then(KeptCall::found) {
                Some(result) => Err(result),
                None => Ok(handler(arguments, context)),
            };
            async move {
                let result = match made {
                    Err(found) => return found,
                    Ok(made) => made.await.into_tool_result(),
                };
                if let Some(asked) = asked.filter(|_| output.is_good(&result)) {
                    asked.keep(result.clone(), result.held_bytes());
                }
                result
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(arguments: &str) -> Key {
        Arc::new(("t".into(), arguments.into(), None))
    }

    fn keep(kept: &mut Entries<ToolResult>, arguments: &str, until: Instant, result: ToolResult) {
        let bytes = result.held_bytes();
        kept.keep(key(arguments), until, result, bytes);
    }

    #[test]
    fn results_are_found_until_their_time_is_over() {
        let (mut kept, now) = (Entries::default(), Instant::now());
        let until = now + Duration::from_secs(5);
        keep(&mut kept, "a", until, ToolResult::text("1"));
        assert_eq!(kept.find(&key("a"), now), Some(ToolResult::text("1")));
        assert_eq!(kept.find(&key("b"), now), None);
        assert_eq!(kept.find(&key("a"), until), None);
    }

    #[test]
    fn no_more_are_kept_than_may_be() {
        let (mut kept, now) = (Entries::default(), Instant::now());
        let until = |n: usize| now + Duration::from_secs(1000 + n as u64);
        for n in 0..MAX_KEPT_RESULTS + 10 {
            keep(&mut kept, &n.to_string(), until(n), ToolResult::text("x"));
            // A key that is stored repeatedly takes one place among the results.
            keep(&mut kept, "again", until(n), ToolResult::text("y"));
        }
        assert!(kept.results.len() <= MAX_KEPT_RESULTS);
        assert!(kept.order.len() <= MAX_KEPT_RESULTS);
        assert!(kept.find(&key("0"), now).is_none());
        assert!(kept.find(&key("again"), now).is_some());
    }

    #[test]
    fn they_take_no_more_bytes_than_they_may() {
        let (mut kept, now) = (Entries::default(), Instant::now());
        let until = |n: u64| now + Duration::from_secs(1000 + n);
        let large = |bytes| ToolResult::text("x".repeat(bytes));
        keep(&mut kept, "huge", until(0), large(MAX_KEPT_BYTES));
        assert!(kept.results.is_empty());
        for n in 0..10 {
            keep(
                &mut kept,
                &n.to_string(),
                until(n),
                large(MAX_KEPT_BYTES / 4),
            );
            assert!(kept.bytes <= MAX_KEPT_BYTES);
        }
        assert!(kept.find(&key("9"), now).is_some() && kept.find(&key("6"), now).is_none());
        keep(&mut kept, "9", until(20), ToolResult::text("small"));
        assert!(
            kept.bytes < MAX_KEPT_BYTES / 4 * 3,
            "it has taken its own place"
        );
        kept.forget(|key| key.1 == "9");
        kept.forget(|_| true);
        assert_eq!(
            (kept.bytes, kept.order.len(), kept.results.len()),
            (0, 0, 0)
        );
    }
}
