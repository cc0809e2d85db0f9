//! A server that asks its client: the user for a form, the model for a text.

use mcpbolt::model::{Elicitation, Elicited, Sampling};
use mcpbolt::prelude::*;
use serde_json::json;

/// Books a table.
#[tool]
async fn book(restaurant: String, context: Context) -> Result<String, HandlerError> {
    context.require(&["elicitation"])?;
    context.require(&["sampling"])?;
    let form = json!({"type": "object", "properties": {"guests": {"type": "integer"}}, "required": ["guests"]});
    let question = format!("For how many guests at {restaurant}?");
    let Elicited::Accepted(filled) = context.elicit(Elicitation::form(question, form)).await?
    else {
        return Ok("Nothing is booked.".to_owned());
    };
    let guests = &filled["guests"];
    let wish = format!("Write a welcome for {guests} guests at {restaurant}.");
    let welcome = context.sample(Sampling::user(wish, 50)).await?;
    Ok(format!("Booked for {guests}. {}", welcome.to_text()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("bookings", "1.0.0").with(handlers![book]);
    Ok(server.build()?.run()?)
}
