use mcpbolt::prelude::*;

#[resource("memo://{id}")]
fn unused() -> String {
    String::new()
}

#[resource("memo://{id}")]
fn unknown(_id: u32, _page: u32) -> String {
    String::new()
}

fn main() {}
