//! A shop that keeps its stock between calls.

use std::collections::BTreeMap;
use std::sync::Mutex;

use mcpbolt::prelude::*;

#[data]
struct Order {
    title: String,
    copies: u32,
    left: u32,
}

struct Shop {
    stock: Mutex<BTreeMap<String, u32>>,
}

#[tools]
impl Shop {
    /// Orders a book.
    #[tool(title = "Order a book")]
    async fn order(
        &self,
        /// The book's title.
        title: String,
        /// How many copies.
        copies: Option<u32>,
        context: Context,
    ) -> Result<Json<Order>, HandlerError> {
        context.progress(1.0, Some(1.0), Some("looking"));
        let copies = copies.unwrap_or(1);
        let mut stock = self
            .stock
            .lock()
            .map_err(|_| HandlerError::new("the shop is closed"))?;
        let left = stock
            .get_mut(&title)
            .ok_or_else(|| HandlerError::new("no such book"))?;
        *left = left
            .checked_sub(copies)
            .ok_or_else(|| HandlerError::new("too few are left"))?;
        Ok(Json(Order {
            title,
            copies,
            left: *left,
        }))
    }

    /// Lists the titles that begin with a text.
    #[tool(read_only)]
    fn search(&self, start: &str) -> Result<String, std::fmt::Error> {
        use std::fmt::Write as _;
        let mut found = String::new();
        for title in self.stock.lock().map_err(|_| std::fmt::Error)?.keys() {
            if title.starts_with(start) {
                writeln!(found, "{title}")?;
            }
        }
        Ok(found)
    }
}

pub fn server() -> Result<Server, Box<dyn std::error::Error>> {
    let stock = Mutex::new(BTreeMap::from([("Emma".to_owned(), 3)]));
    Ok(Server::builder("shop", "1.0.0")
        .with(Shop { stock })
        .build()?)
}
