//! Prompts: with and without arguments, of one message and of many, from what the server knows of its user.

use mcpbolt::prelude::*;
use tracing_subscriber::EnvFilter;

const INSTRUCTIONS: &str = "This server provides various prompt templates for code review, data analysis, writing assistance, debugging help, and personalized learning paths. All prompts are designed to provide structured, context-aware assistance.";

struct Prompts {
    preferred_language: String,
    expertise_level: String,
}

#[tools]
impl Prompts {
    /// A simple greeting prompt to start conversations
    #[prompt]
    fn greeting() -> PromptResult {
        PromptResult::new([
            Role::User.says("Hello! I'd like to start our conversation."),
            Role::Assistant.says("Hello! I'm here to help. What would you like to discuss today?"),
        ])
    }

    /// Structured code review with language-specific best practices
    #[prompt]
    fn code_review(
        &self,
        /// Programming language of the code
        language: &str,
        /// Path to the file or code snippet
        file_path: &str,
        /// Focus areas for the review
        focus_areas: Option<Vec<String>>,
    ) -> PromptResult {
        let level = &self.expertise_level;
        let areas =
            focus_areas.unwrap_or_else(|| vec!["correctness".to_owned(), "performance".to_owned()]);
        let (listed, joined) = (areas.join(", "), areas.join(" and "));
        let reviewer = format!(
            "You are an expert {language} code reviewer. The user's expertise level is {level}."
        );
        let question =
            format!("Please review the {language} code at '{file_path}'. Focus on: {listed}");
        let answer = format!(
            "I'll review your {language} code focusing on {joined}. Let me analyze the code at '{file_path}'..."
        );
        PromptResult::new([
            Role::Assistant.says(reviewer),
            Role::User.says(question),
            Role::Assistant.says(answer),
        ])
        .description(format!(
            "Code review for {language} file focusing on {listed}"
        ))
    }

    /// Analyze data with context-aware suggestions
    #[prompt]
    fn data_analysis(
        /// Type of data: 'csv', 'json', 'logs', etc.
        data_type: &str,
        /// What kind of analysis to perform
        analysis_type: &str,
        /// Additional context about the data
        context: Option<&str>,
    ) -> PromptResult {
        tracing::info!("Data analysis prompt requested for {data_type} data");
        let context = context.unwrap_or("General analysis requested");
        let question = format!(
            "I have {data_type} data that needs {analysis_type} analysis. Context: {context}"
        );
        let answer = format!(
            "I'll help you analyze your {data_type} data using {analysis_type} techniques. Based on your context, I'll focus on providing actionable insights."
        );
        PromptResult::new([Role::User.says(question), Role::Assistant.says(answer)])
    }

    /// Multi-turn writing assistance with style guidance
    #[prompt]
    fn writing_assistant(
        /// Type of content: 'email', 'documentation', 'blog', etc.
        content_type: &str,
        /// Target audience
        audience: &str,
        /// Writing tone: 'formal', 'casual', 'technical', etc.
        tone: Option<&str>,
        /// Key points to cover
        key_points: Vec<String>,
    ) -> PromptResult {
        let tone = tone.unwrap_or("professional");
        let listed = key_points.join(", ");
        let mut messages = vec![
            Role::Assistant.says(format!(
                    "You are a writing assistant helping create {content_type} content for {audience}. Use a {tone} tone."
                )),
            Role::User.says(format!(
                    "I need help writing {content_type} for {audience}. Key points to cover: {listed}"
                )),
            Role::Assistant.says("I'll help you create that content. Let me structure it based on your key points."),
        ];
        for (i, point) in key_points.iter().enumerate() {
            let number = i + 1;
            messages.push(Role::User.says(format!(
                "For point {number}: {point}, what would you suggest?"
            )));
            messages.push(Role::Assistant.says(format!("For '{point}', I recommend...")));
        }
        PromptResult::new(messages).description(format!(
            "Writing {content_type} for {audience} audience with {tone} tone"
        ))
    }

    /// Interactive debugging help with solution tracking
    #[prompt]
    fn debug_assistant(
        /// Error message or symptom
        error_message: &str,
        /// Technology stack involved
        stack: Vec<String>,
        /// Steps already tried
        tried_solutions: Option<Vec<String>>,
    ) -> Result<PromptResult, HandlerError> {
        let first = stack
            .first()
            .ok_or_else(|| HandlerError::invalid("Technology stack cannot be empty"))?;
        let listed = stack.join(", ");
        let mut messages = vec![
            Role::Assistant.says(format!(
                "You are a debugging expert for {listed}. Help diagnose and fix issues."
            )),
            Role::User.says(format!(
                "I'm encountering this error: {error_message}\nStack: {listed}"
            )),
        ];
        let tried = tried_solutions.unwrap_or_default();
        if !tried.is_empty() {
            messages.push(Role::User.says(format!("I've already tried: {}", tried.join(", "))));
            messages.push(Role::Assistant.says("I see you've already attempted some solutions. Let me suggest different approaches."));
        }
        messages.push(Role::Assistant.says(
            "Let's debug this systematically. First, let me understand the error context better.",
        ));
        let error: String = error_message.chars().take(50).collect();
        Ok(PromptResult::new(messages).description(format!("Debugging {error} error in {first}")))
    }

    /// Generate a personalized learning path based on user preferences
    #[prompt]
    fn learning_path(&self) -> PromptResult {
        let (level, language) = (&self.expertise_level, &self.preferred_language);
        let task = format!(
            "Create a learning path for someone at {level} level who prefers {language} language explanations."
        );
        let question = "What should I learn next to improve my programming skills?".to_owned();
        let answer = format!(
            "Based on your {level} expertise level, I recommend the following learning path..."
        );
        PromptResult::new([
            Role::Assistant.says(task),
            Role::User.says(question),
            Role::Assistant.says(answer),
        ])
    }
}

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let prompts = Prompts {
        preferred_language: "English".to_owned(),
        expertise_level: "intermediate".to_owned(),
    };
    let server = Server::builder("prompts", "1.0.0").instructions(INSTRUCTIONS);
    Ok(server.with(prompts).build()?.run()?)
}
