use mcpbolt::prelude::*;

struct Order;

struct Shop;

#[tools]
impl Shop {
    #[tool]
    fn order(&self, title: String, _order: Order) -> String {
        title
    }
}

fn main() {}
