//! Asks the user: for a name in a form, and to visit a page.

use mcpbolt::mcp::ErrorKind;
use mcpbolt::model::{Elicitation, Elicited};
use mcpbolt::prelude::*;
use tokio::sync::Mutex;
use tracing_subscriber::EnvFilter;

/// User information
#[data]
struct UserInfo {
    /// User's name
    name: String,
}

#[derive(Default)]
struct Greeter {
    user_name: Mutex<Option<String>>,
}

#[tools]
impl Greeter {
    /// Greet user with name collection
    #[tool]
    async fn greet_user(&self, greeting: String, context: Context) -> String {
        let known = self.user_name.lock().await.clone();
        let name = match known {
            Some(name) => name,
            None => match context
                .fill_in::<UserInfo>("Please provide your name")
                .await
            {
                Ok(Some(user)) => self.user_name.lock().await.insert(user.name).clone(),
                Ok(None) => "Guest".to_owned(),
                Err(_) => "Unknown".to_owned(),
            },
        };
        format!("{greeting} {name}!")
    }

    /// Reset stored user name
    #[tool]
    async fn reset_name(&self) -> &'static str {
        *self.user_name.lock().await = None;
        "User name reset. Next greeting will ask for name again."
    }

    /// Example of URL elicitation
    #[tool]
    async fn secure_tool_call(context: Context) -> Result<&'static str, HandlerError> {
        let message = "User must visit the following URL to complete tool call";
        let page = Elicitation::url(message, "https://example.com/complete_tool", "elicit_123");
        match context.elicit(page).await {
            Ok(Elicited::Accepted(_)) => Ok("Elicitation via URL successful"),
            Ok(Elicited::Cancelled) => Ok("Elicitation via URL cancelled by user"),
            Ok(Elicited::Declined) => {
                Err(HandlerError::new("Elicitation via URL declined by user"))
            }
            Err(error) => {
                let why = format!("Url elicitation has failed: {error}");
                Err(HandlerError::protocol(ErrorKind::Internal, why))
            }
        }
    }
}

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let server = Server::builder("elicitation", "1.0.0")
        .instructions("Simple server demonstrating elicitation for user name collection")
        .with(Greeter::default());
    Ok(server.build()?.run()?)
}
