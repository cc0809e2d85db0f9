//! Lists, fetched page by page.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use super::Client;
use super::cursor::Cursor;
use crate::error::RequestError;
use crate::json::reader;
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
    client: Client,
    list: List,
    cursor: Cursor,
    ended: bool,
    /// Whether a page came from the cache.
    kept: bool,
    items: PhantomData<fn() -> T>,
}

/// The list to fetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub method: Method,
    /// The member of the result that holds the items.
    pub key: &'static str,
    pub capability: &'static str,
}

impl<T: DeserializeOwned> Pages<T> {
    pub(super) fn new(client: &Client, list: List) -> Self {
        Self {
            client: client.clone(),
            list,
            cursor: Cursor::first(client),
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
                        cache.forget(self.list.method);
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
        let (method, cursor) = (self.list.method, self.cursor.raw());
        let revision = self.client.revision();
        let hints = revision.is_some_and(|revision| revision.rules().cache_hints);
        let advice = self.client.advice().filter(|_| !hints);
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
        let page = answer.as_ref().result().unwrap_or("{}");
        if let (Some(cache), Some(Err(changes))) = (cached, kept) {
            cache.keep(method, cursor, page, (changes, advice));
        }
        Ok(page.into())
    }

    async fn ask(&mut self) -> Result<Vec<T>, RequestError> {
        self.client.offers(self.list.capability)?;
        let result = self.result().await?;
        let result = &*result;
        let items = reader::find(result, self.list.key).unwrap_or("[]");
        #[cfg(feature = "http-client")]
        let items = &*self.client.seen(self.list.method, items);
        let items = serde_json::from_str(items)
            .map_err(|_| RequestError::BadAnswer("a list of another shape"))?;
        self.ended = !self.cursor.follow(result)?;
        Ok(items)
    }
}
