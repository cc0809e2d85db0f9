//! A count for each session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mcpbolt::prelude::*;

#[data]
struct Count {
    visits: u32,
}

#[derive(Default)]
pub struct Visits {
    count: AtomicU32,
}

#[tools]
impl Visits {
    /// Counts a visit.
    #[tool]
    fn visit(&self) -> u32 {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a visit, and waits for nothing.
    #[tool(inline)]
    fn count(&self) -> Json<Count> {
        Json(Count {
            visits: self.visit(),
        })
    }

    /// The visits so far.
    #[resource("visits://so-far")]
    async fn so_far(self: Arc<Self>) -> String {
        self.count.load(Ordering::Relaxed).to_string()
    }

    /// Greets a visitor.
    #[prompt]
    fn greet(&self, name: &str) -> String {
        format!("Greet {name}, visitor {}.", self.visit())
    }

    #[completion(greet, name)]
    fn names(&self) -> [String; 1] {
        [format!("visitor {}", self.visit())]
    }
}
