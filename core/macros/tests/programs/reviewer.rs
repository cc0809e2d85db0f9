//! A prompt whose arguments are completed while a user types.

use mcpbolt::prelude::*;
use mcpbolt::server::Role;

pub struct Reviewer;

#[tools]
impl Reviewer {
    /// Asks for a review.
    #[prompt(title = "Review")]
    fn review(
        &self,
        /// The code.
        code: &str,
        language: Option<String>,
        #[param(default = 3)] findings: u8,
    ) -> Vec<(Role, String)> {
        let language = language.as_deref().unwrap_or("code");
        vec![
            (Role::User, format!("Review this {language}:\n{code}")),
            (Role::Assistant, format!("I name {findings} findings.")),
        ]
    }

    #[completion(review, language)]
    fn languages() -> [&'static str; 3] {
        ["python", "Rust", "ruby"]
    }

    #[completion(review, findings)]
    async fn findings(value: &str, language: Option<String>) -> Vec<String> {
        let most = if language.as_deref() == Some("Rust") {
            2
        } else {
            5
        };
        (1..=most).map(|n| format!("{value}{n}")).collect()
    }
}

pub fn server() -> Result<Server, Box<dyn std::error::Error>> {
    Ok(Server::builder("reviewer", "1.0.0")
        .with(Reviewer)
        .build()?)
}
