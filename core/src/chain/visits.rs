//! Pages that users visit before a call can go on.

use std::collections::HashMap;
use std::sync::Mutex;

use super::sessions::elicitation_id;
use crate::correlate::CancelToken;
use crate::sync::lock;

/// Pages that a server is to say the user has finished with, by their ids. Several calls may wait for a page.
#[derive(Default)]
pub(super) struct Visits(Mutex<HashMap<Box<str>, Vec<CancelToken>>>);

impl Visits {
    /// The server says that the user has finished with a page.
    pub fn finished(&self, params: Option<&str>) {
        let id = params.and_then(elicitation_id);
        let waiting = id.and_then(|id| lock(&self.0).remove(&*id));
        for token in waiting.into_iter().flatten() {
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
        let ids = pages
            .iter()
            .filter_map(|page| Some((elicitation_id(page)?, CancelToken::new())));
        let pages: Vec<(Box<str>, CancelToken)> = ids.collect();
        let mut waiting = lock(&visits.0);
        for (id, token) in &pages {
            let same = waiting.entry(id.clone()).or_default();
            same.push(token.clone());
        }
        drop(waiting);
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
        for (_, token) in &self.pages {
            token.cancel(None);
        }
        let mut waiting = lock(&self.visits.0);
        for (id, _) in &self.pages {
            if let Some(same) = waiting.get_mut(id) {
                // Those of other calls stay.
                same.retain(|token| !token.is_cancelled());
                if same.is_empty() {
                    waiting.remove(id);
                }
            }
        }
    }
}
