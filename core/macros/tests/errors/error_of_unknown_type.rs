use mcpbolt::prelude::*;

struct Closed;

#[tool]
fn order() -> Result<String, Closed> {
    Err(Closed)
}

fn main() {}
