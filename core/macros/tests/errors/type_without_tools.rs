use mcpbolt::prelude::*;

struct Shop;

#[tool]
fn add(a: f64, b: f64) -> f64 {
    a + b
}

fn main() {
    let _ = Server::builder("shop", "1").with(Shop);
    let _ = Server::builder("shop", "1").with(add);
}
