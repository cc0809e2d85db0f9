use mcpbolt::prelude::*;

#[tool(blocking)]
async fn wait(text: String) -> String {
    text
}

#[tool(blocking, inline)]
fn both(text: String) -> String {
    text
}

fn main() {}
