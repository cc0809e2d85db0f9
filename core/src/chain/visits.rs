//! Pages that users visit before a call can go on.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use super::sessions::elicitation_id;
use crate::correlate::CancelToken;
use crate::sync::lock;

/// The most pages with which users have finished that are remembered. The oldest is forgotten for another.
const MAX_FINISHED: usize = 100;

/// The longest id of a page that is remembered.
const MAX_ID_BYTES: usize = 256;

/// Pages that a server is to say the user has finished with, by their ids. Several calls may wait for a page, and a call may learn of
/// the page only when the user has finished with it.
#[derive(Default)]
pub(super) struct Visits(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    waiting: HashMap<Box<str>, Vec<CancelToken>>,
    finished: VecDeque<Box<str>>,
}

impl Visits {
    /// The server says that the user has finished with a page.
    pub fn finished(&self, params: Option<&str>) {
        let Some(id) = params.and_then(elicitation_id) else {
            return;
        };
        let mut pages = lock(&self.0);
        let waiting = pages.waiting.remove(&*id);
        if id.len() <= MAX_ID_BYTES && !pages.finished.contains(&id) {
            if pages.finished.len() >= MAX_FINISHED {
                pages.finished.pop_front();
            }
            pages.finished.push_back(id);
        }
        drop(pages);
        for token in waiting.into_iter().flatten() {
            token.cancel(None);
        }
    }

    /// The server may be another one now, which gives pages ids of its own.
    pub fn lost(&self) {
        lock(&self.0).finished.clear();
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
        let mut known = lock(&visits.0);
        for (id, token) in &pages {
            if known.finished.contains(id) {
                token.cancel(None);
            } else {
                let same = known.waiting.entry(id.clone()).or_default();
                same.push(token.clone());
            }
        }
        // A server that names a page again is to say again that the user has finished with it.
        known
            .finished
            .retain(|id| pages.iter().all(|(used, _)| used != id));
        drop(known);
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
        let mut known = lock(&self.visits.0);
        for (id, _) in &self.pages {
            if let Some(same) = known.waiting.get_mut(id) {
                // Those of other calls stay.
                same.retain(|token| !token.is_cancelled());
                if same.is_empty() {
                    known.waiting.remove(id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_remembered_up_to_a_number_and_a_length() {
        let visits = Visits::default();
        let page = |id: &str| format!(r#"{{"elicitationId":"{id}"}}"#);
        let long = "x".repeat(MAX_ID_BYTES + 1);
        visits.finished(Some(&page(&long)));
        for number in 0..=MAX_FINISHED {
            visits.finished(Some(&page(&number.to_string())));
            visits.finished(Some(&page(&number.to_string())));
        }
        let is_known = |id: &str| lock(&visits.0).finished.iter().any(|known| **known == *id);
        assert_eq!(lock(&visits.0).finished.len(), MAX_FINISHED);
        assert!(!is_known("0") && is_known("1") && !is_known(&long));
        visits.lost();
        assert!(!is_known("1"));
    }
}
