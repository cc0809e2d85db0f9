//! Lists, page by page.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use super::Client;
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::Method;

/// The most pages of one list that are followed: stops a server that never ends (R-PAG-08).
pub(super) const MAX_PAGES: usize = 10_000;

/// The pages of one list, asked for one by one.
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
    cursor: Option<String>,
    taken: usize,
    ended: bool,
    /// Whether a page came from what is kept.
    kept: bool,
    items: PhantomData<fn() -> T>,
}

/// Which list.
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
            cursor: None,
            taken: 0,
            ended: false,
            kept: false,
            items: PhantomData,
        }
    }

    /// The same pages, read as items of another type: of a program's own, or raw JSON.
    pub fn read_as<U: DeserializeOwned>(self) -> Pages<U> {
        Pages {
            client: self.client,
            list: self.list,
            cursor: self.cursor,
            taken: self.taken,
            ended: self.ended,
            kept: self.kept,
            items: PhantomData,
        }
    }

    /// The next page; `None` after the last one and after an error.
    pub async fn next(&mut self) -> Option<Result<Vec<T>, RequestError>> {
        if self.ended {
            return None;
        }
        let page = self.ask().await;
        self.ended |= page.is_err();
        Some(page)
    }

    /// The items of all pages that are left.
    ///
    /// # Errors
    /// The first error of a page.
    pub async fn all(mut self) -> Result<Vec<T>, RequestError> {
        let mut items = Vec::new();
        let mut restarted = false;
        while let Some(page) = self.next().await {
            match page {
                Ok(mut page) => items.append(&mut page),
                // R-CCH-08: a page that was kept led to one that is no more.
                Err(error) if error.code() == Some(-32602) && self.kept && !restarted => {
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

    /// A page of the server's, or one that it lets this client keep.
    async fn result(&mut self) -> Result<Box<str>, RequestError> {
        let (method, cursor) = (self.list.method, self.cursor.as_deref());
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
        if self.taken == MAX_PAGES {
            return Err(RequestError::BadAnswer("a list without end"));
        }
        self.taken += 1;
        let result = self.result().await?;
        let result = &*result;
        let items = reader::find(result, self.list.key).unwrap_or("[]");
        #[cfg(feature = "http-client")]
        let items = &*self.client.seen(self.list.method, items);
        let items = serde_json::from_str(items)
            .map_err(|_| RequestError::BadAnswer("a list of another shape"))?;
        // An empty string is a cursor too (R-PAG-03); null is none (R-PAG-07).
        let next = reader::find(result, "nextCursor").filter(|next| *next != "null");
        if next.is_some() && self.cursor.as_deref() == next {
            return Err(RequestError::BadAnswer("the same page again and again"));
        }
        self.cursor = next.map(str::to_owned);
        self.ended = self.cursor.is_none();
        Ok(items)
    }
}
