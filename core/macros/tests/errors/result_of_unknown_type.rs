use mcpbolt::prelude::*;

struct Order;

#[tool]
fn order(_title: String) -> Result<Order, HandlerError> {
    Ok(Order)
}

#[resource("memo://{id}")]
fn memo(_id: u32) -> Order {
    Order
}

#[prompt]
fn ask() -> u8 {
    7
}

fn main() {}
