//! Pages that users visit before a call can go on.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::correlate::CancelToken;
use crate::json::reader;
use crate::sync::lock;

/// Pages that a server is to say the user has finished with, by their ids.
#[derive(Default)]
pub(super) struct Visits(Mutex<HashMap<Box<str>, CancelToken>>);

impl Visits {
    /// The server says that the user has finished with a page.
    pub fn finished(&self, params: Option<&str>) {
        let id = params.and_then(|params| reader::find(params, "elicitationId"));
        let id = id.and_then(reader::as_str);
        if let Some(token) = id.and_then(|id| lock(&self.0).get(&*id).cloned()) {
            token.cancel(None);
        }
    }
}

/// Forgets the pages of one error when dropped.
pub(super) struct Visiting<'a> {
    visits: &'a Visits,
    pages: Vec<(Box<str>, CancelToken)>,
}

impl<'a> Visiting<'a> {
    pub fn begin(visits: &'a Visits, pages: &[&str]) -> Self {
        let ids = pages.iter().filter_map(|page| {
            let id = reader::find(page, "elicitationId").and_then(reader::as_str)?;
            Some((id.into(), CancelToken::new()))
        });
        let pages: Vec<(Box<str>, CancelToken)> = ids.collect();
        lock(&visits.0).extend(pages.iter().cloned());
        Self { visits, pages }
    }

    pub async fn finished(&self) {
        for (_, token) in &self.pages {
            token.cancelled().await;
        }
    }
}

impl Drop for Visiting<'_> {
    fn drop(&mut self) {
        let mut visits = lock(&self.visits.0);
        for (id, _) in &self.pages {
            visits.remove(id);
        }
    }
}
