use mcpbolt::prelude::*;

struct Shop;

fn main() {
    let _ = Server::builder("shop", "1").with(Shop);
}
