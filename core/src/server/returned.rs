//! Conversion of what the handlers of resources, prompts and completion return.

use serde::Serialize;

use super::output::Json;
use crate::handler::{HandlerError, IntoHandlerError};
use crate::model::{Completions, Content, PromptResult, ResourceContents, Role};

/// A value that converts to the contents of a resource: text, bytes, JSON, or a [`Result`] of one of them. An
/// [`Option`] that is `None` says that there is no such resource.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the contents of a resource",
    label = "does not implement `IntoContents`",
    note = "a resource returns text, `Vec<u8>`, `Json<T>`, `ResourceContents`, or an `Option` or a `Result` of one of these"
)]
pub trait IntoContents {
    /// Converts into the contents at `uri`.
    ///
    /// # Errors
    /// A protocol error.
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, HandlerError>;
}

impl IntoContents for String {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, HandlerError> {
        Ok(vec![ResourceContents::text(uri, self)])
    }
}

impl IntoContents for &str {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, HandlerError> {
        self.to_owned().into_contents(uri)
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, HandlerError> {
        let mut contents = ResourceContents::blob(uri, self, "");
        contents.mime_type = None;
        Ok(vec![contents])
    }
}

impl<T: Serialize> IntoContents for Json<T> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, HandlerError> {
        let mut contents = ResourceContents::text(uri, serde_json::to_string(&self.0)?);
        contents.mime_type = Some("application/json".into());
        Ok(vec![contents])
    }
}

impl IntoContents for ResourceContents {
    fn into_contents(self, _: &str) -> Result<Vec<ResourceContents>, HandlerError> {
        Ok(vec![self])
    }
}

impl IntoContents for Vec<ResourceContents> {
    fn into_contents(self, _: &str) -> Result<Vec<ResourceContents>, HandlerError> {
        Ok(self)
    }
}

impl<T: IntoContents> IntoContents for Option<T> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, HandlerError> {
        let missing = || HandlerError::not_found(format!("there is no resource {uri:?}"));
        self.ok_or_else(missing)?.into_contents(uri)
    }
}

impl<T: IntoContents, E: IntoHandlerError> IntoContents for Result<T, E> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>, HandlerError> {
        self.map_err(E::into_handler_error)?.into_contents(uri)
    }
}

/// A value that converts to a rendered prompt: the text of the user's message, messages with their roles, or a
/// [`Result`] of one of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a prompt",
    label = "does not implement `IntoPrompt`",
    note = "a prompt returns text, `Vec<(Role, Content)>`, `PromptResult`, or a `Result` of one of these"
)]
pub trait IntoPrompt {
    /// Converts into a rendered prompt.
    ///
    /// # Errors
    /// A protocol error.
    fn into_prompt(self) -> Result<PromptResult, HandlerError>;
}

impl IntoPrompt for PromptResult {
    fn into_prompt(self) -> Result<PromptResult, HandlerError> {
        Ok(self)
    }
}

impl IntoPrompt for String {
    fn into_prompt(self) -> Result<PromptResult, HandlerError> {
        Ok(PromptResult::user(self))
    }
}

impl IntoPrompt for &str {
    fn into_prompt(self) -> Result<PromptResult, HandlerError> {
        Ok(PromptResult::user(self))
    }
}

impl<C: Into<Content>> IntoPrompt for Vec<(Role, C)> {
    fn into_prompt(self) -> Result<PromptResult, HandlerError> {
        let messages = self
            .into_iter()
            .map(|(role, content)| (role, content.into()));
        Ok(PromptResult {
            messages: messages.collect(),
            ..PromptResult::default()
        })
    }
}

impl<T: IntoPrompt, E: IntoHandlerError> IntoPrompt for Result<T, E> {
    fn into_prompt(self) -> Result<PromptResult, HandlerError> {
        self.map_err(E::into_handler_error)?.into_prompt()
    }
}

/// A value that converts to the values that an argument may take: a list of texts, [`Completions`], or a
/// [`Result`] of one of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a completion",
    label = "does not implement `IntoCompletions`",
    note = "a completion returns a `Vec` or an array of texts, `Completions`, or a `Result` of one of these"
)]
pub trait IntoCompletions {
    /// Converts into completions.
    ///
    /// # Errors
    /// A protocol error.
    fn into_completions(self) -> Result<Completions, HandlerError>;
}

impl IntoCompletions for Completions {
    fn into_completions(self) -> Result<Completions, HandlerError> {
        Ok(self)
    }
}

impl<T: Into<String>> IntoCompletions for Vec<T> {
    fn into_completions(self) -> Result<Completions, HandlerError> {
        let values: Vec<String> = self.into_iter().map(Into::into).collect();
        Ok(values.into())
    }
}

impl<T: Into<String>, const N: usize> IntoCompletions for [T; N] {
    fn into_completions(self) -> Result<Completions, HandlerError> {
        Vec::from(self).into_completions()
    }
}

impl<T: IntoCompletions, E: IntoHandlerError> IntoCompletions for Result<T, E> {
    fn into_completions(self) -> Result<Completions, HandlerError> {
        self.map_err(E::into_handler_error)?.into_completions()
    }
}
