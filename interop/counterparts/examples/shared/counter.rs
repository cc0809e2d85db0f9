//! A counter of each session, with every kind of thing that a server offers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use mcpbolt::handler::Head;
use mcpbolt::mcp::Method;
use mcpbolt::prelude::*;
use mcpbolt::server::RegistryError;
use serde_json::{Map, Value, json};

#[derive(Default)]
pub struct Counter {
    value: AtomicI64,
}

#[tools]
impl Counter {
    /// Increment the counter by 1
    #[tool]
    fn increment(&self) -> i64 {
        self.value.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Decrement the counter by 1
    #[tool]
    fn decrement(&self) -> i64 {
        self.value.fetch_sub(1, Ordering::Relaxed) - 1
    }

    /// Get the current counter value
    #[tool]
    fn get_value(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Long running task example
    #[tool]
    async fn long_task() -> &'static str {
        tokio::time::sleep(Duration::from_secs(10)).await;
        "Long task completed"
    }

    /// Say hello to the client
    #[tool]
    fn say_hello() -> &'static str {
        "hello"
    }

    /// Repeat what you say
    #[tool]
    fn echo(Json(object): Json<Map<String, Value>>) -> String {
        Value::Object(object).to_string()
    }

    /// Calculate the sum of two numbers
    #[tool]
    fn sum(a: i32, b: i32) -> i64 {
        i64::from(a) + i64::from(b)
    }

    /// Get the session ID for this connection
    #[tool]
    fn get_session_id(head: Option<Arc<Head>>) -> String {
        match head.as_ref().and_then(|head| head.session.as_deref()) {
            Some(id) => id.to_owned(),
            None => "no session (not running over streamable HTTP?)".to_owned(),
        }
    }

    /// This is an example prompt that takes one required argument, message
    #[prompt(meta = json!({"meta_key": "meta_value"}))]
    fn example_prompt(
        /// A message to put in the prompt
        message: &str,
    ) -> String {
        format!("This is an example prompt with your message here: '{message}'")
    }

    /// Analyze the current counter value and suggest next steps
    #[prompt]
    fn counter_analysis(
        &self,
        /// The target value you're trying to reach
        goal: i32,
        /// Preferred strategy: 'fast' or 'careful'
        strategy: Option<&str>,
    ) -> PromptResult {
        let value = self.get_value();
        let (difference, strategy) = (i64::from(goal) - value, strategy.unwrap_or("careful"));
        let intent = "I'll analyze the counter situation and suggest the best approach.";
        let facts = format!(
            "Current counter value: {value}\nGoal value: {goal}\nDifference: {difference}\nStrategy preference: {strategy}\n\nPlease analyze the situation and suggest the best approach to reach the goal."
        );
        PromptResult::new([Role::Assistant.says(intent), Role::User.says(facts)])
            .description(format!("Counter analysis for reaching {goal} from {value}"))
    }

    #[resource("str:////Users/to/some/path/", name = "cwd", mime_type = "text/plain")]
    fn cwd() -> &'static str {
        "/Users/to/some/path/"
    }

    #[resource("memo://insights", name = "memo-name", mime_type = "text/plain")]
    fn insights() -> &'static str {
        "Business Intelligence Memo\n\nAnalysis has revealed 5 key insights ..."
    }
}

pub fn server() -> Result<Server, RegistryError> {
    Server::builder("counter", "1.0.0")
        .instructions("This server provides counter tools and prompts. Tools: increment, decrement, get_value, say_hello, echo, sum. Prompts: example_prompt (takes a message), counter_analysis (analyzes counter state with a goal).")
        .list_meta(Method::ListTools, json!({"tool_meta_key": "tool_meta_value"}))
        .list_meta(Method::ListPrompts, json!({"router_meta_key": "router_meta_value"}))
        .per_session(Counter::default)
        .build()
}
