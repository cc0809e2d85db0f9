use mcpbolt::prelude::*;

struct Order;

#[tool]
async fn order() -> Json<Order> {
    Json(Order)
}

fn main() {}
