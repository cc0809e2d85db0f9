//! A server of resources that change: clients subscribe to `stock://TITLE` and are told of each sale.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use mcpbolt::prelude::*;

/// Tells clients of changes.
static SERVER: OnceLock<Server> = OnceLock::new();

struct Stock {
    copies: Mutex<HashMap<String, u32>>,
}

#[tools]
impl Stock {
    /// How many copies of a title are left.
    #[resource("stock://{title}")]
    fn left(&self, title: String) -> Option<String> {
        Some(self.copies.lock().ok()?.get(&title)?.to_string())
    }

    /// Sells a copy.
    #[tool]
    fn sell(&self, title: String) -> Result<String, &'static str> {
        let mut copies = self.copies.lock().map_err(|_| "the stock is closed")?;
        let left = copies.get_mut(&title).ok_or("there is no such title")?;
        *left = left.checked_sub(1).ok_or("sold out")?;
        if let Some(server) = SERVER.get() {
            server.resource_updated(&format!("stock://{title}"));
        }
        Ok(format!("{left} left"))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let copies = Mutex::new(HashMap::from([
        ("Emma".to_owned(), 3),
        ("Persuasion".to_owned(), 1),
    ]));
    let server = Server::builder("stock", "1.0.0")
        .subscriptions()
        .with(Stock { copies });
    let server = server.build()?;
    Ok(SERVER.get_or_init(|| server).run()?)
}
