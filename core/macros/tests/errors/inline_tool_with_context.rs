use mcpbolt::prelude::*;

#[tool(inline)]
fn tell(text: String, context: Context) -> String {
    context.progress(1.0, None, None);
    text
}

#[tool(inline)]
async fn wait(text: String) -> String {
    text
}

fn main() {}
