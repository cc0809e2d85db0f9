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
/// changes what they tell of has them forgotten.
#[derive(Clone)]
pub struct Results {
    ttl: Duration,
    scope: CacheScope,
    kept: Arc<Mutex<Kept>>,
}

/// What was asked: the tool, its arguments and, where it matters, by whom.
type Key = Arc<(String, String, Option<String>)>;

/// As many as may be; the oldest gives way.
#[derive(Default)]
struct Kept {
    results: HashMap<Key, One>,
    /// In the order in which they came. Those that were replaced are still here.
    order: VecDeque<(Instant, Key)>,
    /// What all of them take.
    bytes: usize,
    /// How often something was forgotten.
    forgotten: u64,
}

struct One {
    until: Instant,
    result: ToolResult,
    bytes: usize,
}

impl Kept {
    fn find(&self, key: &Key, now: Instant) -> Option<ToolResult> {
        let one = self.results.get(key)?;
        (now < one.until).then(|| one.result.clone())
    }

    fn keep(&mut self, key: Key, until: Instant, result: ToolResult) {
        let bytes = key.0.len() + key.1.len() + result.held_bytes();
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

impl Results {
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

    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What a call asks; `None` when its result is not to be kept.
    fn key(&self, context: &Context) -> Option<Key> {
        let whose = match self.scope {
            CacheScope::Public => None,
            CacheScope::Private => Some(context.principal()?.to_owned()),
        };
        let message = context.message()?;
        let given = message.arguments().unwrap_or("{}");
        if given.len() > CHECK_HERE_BYTES {
            return None;
        }
        let mut arguments = Vec::new();
        writer::append_compact(&mut arguments, given);
        let arguments = String::from_utf8(arguments).ok()?;
        Some(Arc::new((message.name()?.into_owned(), arguments, whose)))
    }
}

impl fmt::Debug for Results {
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
        let ttl = results.ttl.as_millis() as u64;
        let output = Output::of(&tool);
        let tool = tool.noted("cache", serde_json::json!({ "ttl_ms": ttl }));
        self.tool(tool, move |arguments: A, context: Context| {
            let (results, output) = (results.clone(), output.clone());
            let key = results.key(&context);
            let (found, forgotten) = results.with(|kept| {
                let key = key.as_ref();
                let found = key.and_then(|key| kept.find(key, Instant::now()));
                (found, kept.forgotten)
            });
            let made = match found {
                Some(result) => Err(result),
                None => Ok(handler(arguments, context)),
            };
            async move {
                let result = match made {
                    Err(found) => return found,
                    Ok(made) => made.await.into_tool_result(),
                };
                if let Some(key) = key.filter(|_| output.is_good(&result)) {
                    let until = later(Instant::now(), results.ttl);
                    results.with(|kept| {
                        // It may tell of what was before.
                        if kept.forgotten == forgotten {
                            kept.keep(key, until, result.clone());
                        }
                    });
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

    #[test]
    fn results_are_found_until_their_time_is_over() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        let until = now + Duration::from_secs(5);
        kept.keep(key("a"), until, ToolResult::text("1"));
        assert_eq!(kept.find(&key("a"), now), Some(ToolResult::text("1")));
        assert_eq!(kept.find(&key("b"), now), None);
        assert_eq!(kept.find(&key("a"), until), None);
    }

    #[test]
    fn no_more_are_kept_than_may_be() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        let until = |n: usize| now + Duration::from_secs(1000 + n as u64);
        for n in 0..MAX_KEPT_RESULTS + 10 {
            kept.keep(key(&n.to_string()), until(n), ToolResult::text("x"));
            // One that comes again and again takes one place among the results.
            kept.keep(key("again"), until(n), ToolResult::text("y"));
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
        kept.keep(key("huge"), until(0), large(MAX_KEPT_BYTES));
        assert!(kept.results.is_empty());
        for n in 0..10 {
            kept.keep(key(&n.to_string()), until(n), large(MAX_KEPT_BYTES / 4));
            assert!(kept.bytes <= MAX_KEPT_BYTES);
        }
        assert!(kept.find(&key("9"), now).is_some() && kept.find(&key("6"), now).is_none());
        kept.keep(key("9"), until(20), ToolResult::text("small"));
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
