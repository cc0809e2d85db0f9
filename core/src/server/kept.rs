//! Results of tools that are kept for a while, and given again to who asks the same.

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
use crate::json::writer;
use crate::limits::{CHECK_HERE_BYTES, MAX_KEPT_BYTES, MAX_KEPT_RESULTS, later};

/// Results that are kept for so long: see [`Builder::kept_tool`]. Cheap to clone; a handler that
/// changes what they tell of has them forgotten. `T` is what an executor of one's own has for a result.
pub struct Results<T = ToolResult> {
    ttl: Duration,
    scope: CacheScope,
    kept: Arc<Mutex<Kept<T>>>,
}

impl<T> Clone for Results<T> {
    fn clone(&self) -> Self {
        Self {
            kept: self.kept.clone(),
            ..*self
        }
    }
}

/// What was asked: the tool, its arguments and, where it matters, by whom.
type Key = Arc<(String, String, Option<String>)>;

/// As many as may be; the oldest gives way.
struct Kept<T> {
    results: HashMap<Key, One<T>>,
    /// In the order in which they came. Those that were replaced are still here.
    order: VecDeque<(Instant, Key)>,
    /// What all of them take.
    bytes: usize,
    /// How often something was forgotten.
    forgotten: u64,
}

struct One<T> {
    until: Instant,
    result: T,
    bytes: usize,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self {
            results: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            forgotten: 0,
        }
    }
}

impl<T: Clone> Kept<T> {
    fn find(&self, key: &Key, now: Instant) -> Option<T> {
        let one = self.results.get(key)?;
        (now < one.until).then(|| one.result.clone())
    }

    /// `held` bytes are the result's.
    fn keep(&mut self, key: Key, until: Instant, result: T, held: usize) {
        let bytes = key.0.len() + key.1.len() + held;
        if bytes > MAX_KEPT_BYTES {
            return;
        }
        self.remove(&key);
        while (self.order.len() >= MAX_KEPT_RESULTS || self.bytes + bytes > MAX_KEPT_BYTES)
            && let Some((until, oldest)) = self.order.pop_front()
        {
            let found = self.results.get(&oldest);
            if found.is_some_and(|one| one.until == until) {
                self.remove(&oldest);
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

    fn remove(&mut self, key: &Key) {
        if let Some(one) = self.results.remove(key) {
            self.bytes -= one.bytes;
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
    }
}

impl<T: Clone> Results<T> {
    /// None yet. Those of [`Public`](CacheScope::Public) scope are for everybody, others for who
    /// asked alone, and not kept where nobody knows who that is. Nor are those of arguments of more
    /// than [`CHECK_HERE_BYTES`]. At most [`MAX_KEPT_RESULTS`] are held, of [`MAX_KEPT_BYTES`]
    /// together; the oldest gives way.
    pub fn new(ttl: Duration, scope: CacheScope) -> Self {
        Self {
            ttl,
            scope,
            kept: Arc::default(),
        }
    }

    /// Forgets those of a tool. What a handler that is under way meanwhile comes to is not kept.
    pub fn forget(&self, tool: &str) {
        self.with(|kept| kept.forget(|key| key.0 == tool));
    }

    /// The same for those of all tools.
    pub fn forget_all(&self) {
        self.with(|kept| kept.forget(|_| true));
    }

    /// What a call asks, for an executor of one's own: a tool with these arguments, raw JSON, by
    /// whom somebody knows. `None` when its result is not to be kept.
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

    fn with<R>(&self, act: impl FnOnce(&mut Kept<T>) -> R) -> R {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A call whose result is kept, or may be. See [`Results::ask`].
pub struct KeptCall<T = ToolResult> {
    results: Results<T>,
    key: Key,
    /// As it was when the call came.
    forgotten: u64,
}

impl<T: Clone> KeptCall<T> {
    /// The result of the same call before.
    pub fn found(&self) -> Option<T> {
        let now = Instant::now();
        self.results.with(|kept| kept.find(&self.key, now))
    }

    /// Keeps its result, which takes so many bytes, unless something was forgotten since the call
    /// came: it may tell of what was before.
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
    /// Adds a tool whose results are kept: the same call gets the same answer until its time is
    /// over or it is forgotten, without its handler. Failures are not kept, nor is what does not fit
    /// the output schema. `mcp.get_schema` shows for how long, as `"cache": {"ttl_ms": …}`.
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

    fn keep(kept: &mut Kept<ToolResult>, arguments: &str, until: Instant, result: ToolResult) {
        let bytes = result.held_bytes();
        kept.keep(key(arguments), until, result, bytes);
    }

    #[test]
    fn results_are_found_until_their_time_is_over() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        let until = now + Duration::from_secs(5);
        keep(&mut kept, "a", until, ToolResult::text("1"));
        assert_eq!(kept.find(&key("a"), now), Some(ToolResult::text("1")));
        assert_eq!(kept.find(&key("b"), now), None);
        assert_eq!(kept.find(&key("a"), until), None);
    }

    #[test]
    fn no_more_are_kept_than_may_be() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        let until = |n: usize| now + Duration::from_secs(1000 + n as u64);
        for n in 0..MAX_KEPT_RESULTS + 10 {
            keep(&mut kept, &n.to_string(), until(n), ToolResult::text("x"));
            // One that comes again and again takes one place among the results.
            keep(&mut kept, "again", until(n), ToolResult::text("y"));
        }
        assert!(kept.results.len() <= MAX_KEPT_RESULTS);
        assert!(kept.order.len() <= MAX_KEPT_RESULTS);
        assert!(kept.find(&key("0"), now).is_none());
        assert!(kept.find(&key("again"), now).is_some());
    }

    #[test]
    fn they_take_no_more_bytes_than_they_may() {
        let (mut kept, now) = (Kept::default(), Instant::now());
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
