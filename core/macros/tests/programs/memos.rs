//! Memos as resources: a list, and one by its id.

use std::collections::BTreeMap;

use mcpbolt::prelude::*;

struct Memos(BTreeMap<u32, &'static str>);

#[tools]
impl Memos {
    /// A memo.
    #[resource("memo://{id}", mime_type = "text/plain")]
    async fn memo(&self, id: u32) -> Option<&'static str> {
        self.0.get(&id).copied()
    }

    /// The ids of all memos.
    #[resource("memo://all", name = "memos")]
    fn all(&self) -> Json<Vec<u32>> {
        Json(self.0.keys().copied().collect())
    }

    #[completion("memo://{id}", id)]
    fn ids(&self) -> Vec<String> {
        self.0.keys().map(u32::to_string).collect()
    }
}

pub fn server() -> Result<Server, Box<dyn std::error::Error>> {
    let memos = Memos(BTreeMap::from([(7, "Buy milk."), (70, "Call Emma.")]));
    Ok(Server::builder("memos", "1.0.0").with(memos).build()?)
}
