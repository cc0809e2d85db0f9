//! The lists of a server, as raw JSON: the engine has checked their shape, and Python parses them.

use std::sync::{Arc, Mutex, PoisonError};

use mcpbolt::client::{self, Client};
use mcpbolt::error::RequestError;
use mcpbolt::model::Tool;
use pyo3::prelude::*;
use serde_json::value::RawValue;

use crate::client::Link;
use crate::operation::Outcome;

type Item = Box<RawValue>;

/// A list that is read page by page.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Pages(Arc<Mutex<Option<client::Pages<Item>>>>);

fn pages(client: &Client, kind: &str) -> client::Pages<Item> {
    match kind {
        "tools" => client.tool_pages().read_as(),
        "resources" => client.resource_pages().read_as(),
        "resource_templates" => client.resource_template_pages().read_as(),
        _ => client.prompt_pages().read_as(),
    }
}

fn array(items: &[Item]) -> Outcome {
    let items: Vec<_> = items.iter().map(|item| item.get()).collect();
    Outcome::Json(format!("[{}]", items.join(",")))
}

#[pymethods]
impl Pages {
    /// Makes the list of that kind, positioned at its beginning.
    #[new]
    fn new(link: &Link, kind: &str) -> Self {
        Self(Arc::new(Mutex::new(Some(pages(&link.client, kind)))))
    }

    /// `future` gets the items of the next page; `None` after the last one.
    fn next(&self, link: &Link, future: Py<PyAny>) -> u64 {
        let place = self.0.clone();
        let take =
            |place: &Mutex<Option<_>>| place.lock().unwrap_or_else(PoisonError::into_inner).take();
        link.start(future, async move {
            let pages: Option<client::Pages<Item>> = take(&place);
            let busy = RequestError::Misuse("a page is being asked for");
            let mut pages = pages.ok_or(busy)?;
            let page = pages.next().await.transpose();
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(pages);
            Ok(page?.map_or(Outcome::Nothing, |items| array(&items)))
        })
    }
}

/// Reads all pages of a list; `future` gets the items. From then on, tool results are validated against
/// the output schemas of this list (R-STR-02).
#[pyfunction]
pub fn whole_list(link: &Link, kind: &str, future: Py<PyAny>) -> u64 {
    let (client, list) = (link.client.clone(), pages(&link.client, kind));
    let are_tools = kind == "tools";
    link.start(future, async move {
        let items = list.all().await?;
        if are_tools {
            let read = |item: &Item| serde_json::from_str(item.get());
            let tools: Result<Vec<Tool>, _> = items.iter().map(read).collect();
            let wrong = |_| RequestError::BadAnswer("a list of another shape");
            client.learn_tools(&tools.map_err(wrong)?);
        }
        Ok(array(&items))
    })
}
