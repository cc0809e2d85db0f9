//! Rounds of calls: questions that came together are asked together.

use std::sync::{Arc, Mutex};

use super::route::Route;
use crate::sync::lock;

/// The calls of a lane whose rounds end when questions that came together have been given to them.
#[derive(Default)]
pub(super) struct Rounds(Mutex<State>);

#[derive(Default)]
struct State {
    /// How many batches of questions are being given out.
    batches: usize,
    routes: Vec<Arc<Route>>,
}

impl Rounds {
    /// Lets rounds end together, when the guard is dropped.
    pub fn together(self: &Arc<Self>) -> Together {
        lock(&self.0).batches += 1;
        Together(self.clone())
    }

    /// Ends the round of a call: asks its client what it has been given to ask.
    pub fn end(&self, route: Arc<Route>) {
        let mut state = lock(&self.0);
        if state.batches > 0 {
            return state.routes.push(route);
        }
        drop(state);
        route.end_round();
    }
}

/// Ends rounds when dropped.
pub(super) struct Together(Arc<Rounds>);

impl Drop for Together {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.batches -= 1;
        if state.batches > 0 {
            return;
        }
        let routes = std::mem::take(&mut state.routes);
        drop(state);
        // The round of a call ends once, however often it is named.
        routes.iter().for_each(Route::end_round);
    }
}
