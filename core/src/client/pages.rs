//! Lists, fetched page by page.

use std::marker::PhantomData;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::cache::Advice;
use super::core::{ClientCore, result};
use super::cursor::ListCursor;
use crate::error::RequestError;
use crate::json::{number, reader};
use crate::mcp::Method;
use crate::mcp::code::INVALID_PARAMS;

/// The pages of one list, fetched one by one.
///
/// ```no_run
/// # async fn example(client: mcpbolt::client::Client) -> Result<(), mcpbolt::error::RequestError> {
/// let mut pages = client.tool_pages();
/// while let Some(page) = pages.next().await {
///     for tool in page? {
///         println!("{}", tool.name);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pages<T> {
    client: ClientCore,
    list: List,
    cursor: ListCursor,
    ended: bool,
    /// Whether a page came from the cache.
    kept: bool,
    items: PhantomData<fn() -> T>,
}

/// A list that servers have: its method, the member of the result that holds the items, and the
/// capability.
type List = (Method, &'static str, &'static str);

pub(super) const TOOLS: List = (Method::ListTools, "tools", "tools");
pub(super) const RESOURCES: List = (Method::ListResources, "resources", "resources");
pub(super) const RESOURCE_TEMPLATES: List = (
    Method::ListResourceTemplates,
    "resourceTemplates",
    "resources",
);
pub(super) const PROMPTS: List = (Method::ListPrompts, "prompts", "prompts");
#[cfg(feature = "skills")]
pub(super) const SKILLS: List = (Method::ListSkills, "skills", "extensions");

impl<T: DeserializeOwned> Pages<T> {
    pub(super) fn new(client: &ClientCore, list: List) -> Self {
        Self {
            client: client.clone(),
            list,
            cursor: client.first_page(),
            ended: false,
            kept: false,
            items: PhantomData,
        }
    }

    /// Reads the items as another type: your own, or raw JSON.
    pub fn read_as<U: DeserializeOwned>(self) -> Pages<U> {
        Pages {
            client: self.client,
            list: self.list,
            cursor: self.cursor,
            ended: self.ended,
            kept: self.kept,
            items: PhantomData,
        }
    }

    /// Fetches the next page; `None` after the last page and after an error. A list is an error if
    /// it repeats a cursor, has more than 10,000 pages, or is longer than four times
    /// [`Limits::max_message_bytes`](crate::limits::Limits::max_message_bytes).
    pub async fn next(&mut self) -> Option<Result<Vec<T>, RequestError>> {
        if self.ended {
            return None;
        }
        let page = self.ask().await;
        self.ended |= page.is_err();
        Some(page)
    }

    /// Fetches the items of all remaining pages.
    ///
    /// # Errors
    /// The first error of any page.
    pub async fn all(mut self) -> Result<Vec<T>, RequestError> {
        let mut items = Vec::new();
        let mut restarted = false;
        while let Some(page) = self.next().await {
            match page {
                Ok(mut page) => items.append(&mut page),
                // R-CCH-08: a cached page led to a cursor that the server no longer knows.
                Err(error) if error.code() == Some(INVALID_PARAMS) && self.kept && !restarted => {
                    if let Some(cache) = &self.client.cache {
                        cache.forget(self.list.0);
                    }
                    items.clear();
                    self = Self::new(&self.client, self.list);
                    restarted = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(items)
    }

    /// Returns a page from the cache, or else from the server.
    async fn result(&mut self) -> Result<Box<str>, RequestError> {
        let (method, cursor) = (self.list.0, self.cursor.raw());
        let revision = self.client.revision();
        let hints = revision.is_some_and(|revision| revision.rules().cache_hints);
        // R-XST-03: in revisions with cache hints, only the hints count.
        let advice = advice(&self.client).filter(|_| !hints);
        let cached = self
            .client
            .cache
            .as_ref()
            .filter(|_| hints || advice.is_some());
        let kept = cached.map(|cache| cache.page(method, cursor));
        if let Some(Ok(page)) = kept {
            self.kept = true;
            return Ok(page);
        }
        let params = cursor.map(|cursor| format!("{{\"cursor\":{cursor}}}"));
        let answer = self.client.ask(method, params.as_deref()).await?;
        let page = result(&answer);
        if let (Some(cache), Some(Err(changes))) = (cached, kept) {
            cache.keep(method, cursor, page, (changes, advice));
        }
        Ok(page.into())
    }

    async fn ask(&mut self) -> Result<Vec<T>, RequestError> {
        let (method, key, capability) = self.list;
        self.client.require(capability)?;
        let page = self.result().await?;
        let items = reader::find(&page, key).unwrap_or("[]");
        let items = self.client.usable(method, items);
        let items = serde_json::from_str(&items)
            .map_err(|_| RequestError::BadAnswer("a list of another shape"))?;
        self.ended = !self.cursor.follow(&page)?;
        Ok(items)
    }
}

/// Fetches all pages of a list that has params of its own, given as JSON members. Returns the items in
/// the member `key` of each page, raw JSON.
///
/// # Errors
/// As [`Pages::next`].
pub(super) async fn all_items(
    client: &ClientCore,
    (method, key): (Method, &str),
    params: &str,
) -> Result<Vec<String>, RequestError> {
    let (mut items, mut cursor) = (Vec::new(), client.first_page());
    loop {
        let next = cursor.raw().map(|next| format!("\"cursor\":{next}"));
        let mut members = vec![params, next.as_deref().unwrap_or_default()];
        members.retain(|member| !member.is_empty());
        let params = format!("{{{}}}", members.join(","));
        let answer = client.ask(method, Some(&params)).await?;
        let found = reader::find(result(&answer), key).unwrap_or("[]");
        items.extend(reader::elements(found).map(str::to_owned));
        if !cursor.follow(result(&answer))? {
            return Ok(items);
        }
    }
}

/// The server's advice on caching, in the profile that has it.
fn advice(client: &ClientCore) -> Option<Advice> {
    if !client.handle.config().profile.overlay().experimental {
        return None;
    }
    let capabilities = &client.handle.peer()?.capabilities;
    let said = |name| {
        let number = reader::find_path(capabilities, &["experimental", "caching", name]);
        number.and_then(number::as_u64)
    };
    Some(Advice {
        ttl: Duration::from_millis(said("ttl")?),
        pages: said("maxSize").map_or(usize::MAX, |size| size as usize),
    })
}
