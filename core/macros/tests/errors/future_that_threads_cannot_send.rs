use std::rc::Rc;

use mcpbolt::prelude::*;

#[tool]
async fn wait(context: Context) -> String {
    let text = Rc::new("done");
    context.sleep(std::time::Duration::ZERO).await;
    text.to_string()
}

fn main() {}
