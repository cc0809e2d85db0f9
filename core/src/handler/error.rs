//! The error that handlers return.

use std::error::Error;
use std::fmt;

use crate::mcp::ErrorKind;

/// A failure that a handler reports; its text is sent to the peer. The text of any other failure (a
/// panic) is not sent.
///
/// Every [`Error`] that threads can share converts into this type, and so do texts, `Box<dyn Error + Send + Sync>` and
/// the errors of crates such as anyhow. So `?` works in handlers that return `Result<_, HandlerError>`; a handler may
/// also return any of these errors itself. The caller gets the text of the error and of its sources. An error of a tool
/// becomes a result that the model reads; an error of any other handler becomes a protocol error of its kind.
///
/// ```
/// use mcpbolt::handler::HandlerError;
///
/// fn price(text: &str) -> Result<f64, HandlerError> {
///     let price: f64 = text.parse()?;
///     if price < 0.0 {
///         Err("a price is not negative")?;
///     }
///     Ok(price)
/// }
/// assert_eq!(price("-1").unwrap_err().to_string(), "a price is not negative");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerError {
    kind: ErrorKind,
    text: String,
    of_protocol: bool,
    data: Option<Box<str>>,
    /// The error in the action dialect, if the handler gave it a type.
    action: Option<Box<ActionWords>>,
}

/// The members of an error in the action dialect, besides its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ActionWords {
    kind: String,
    code: Option<u16>,
    help_url: Option<String>,
}

impl HandlerError {
    /// A protocol error, even from a tool: the request cannot be answered at all. The model does
    /// not read it.
    ///
    /// ```
    /// use mcpbolt::handler::HandlerError;
    /// use mcpbolt::mcp::ErrorKind;
    /// let error = HandlerError::protocol(ErrorKind::Internal, "the database is gone");
    /// assert!(error.is_of_protocol());
    /// ```
    pub fn protocol(kind: ErrorKind, text: impl fmt::Display) -> Self {
        Self {
            of_protocol: true,
            ..Self::of(kind, text)
        }
    }

    /// Whether this is a protocol error even if a tool returns it.
    pub fn is_of_protocol(&self) -> bool {
        self.of_protocol
    }

    /// A failure with a type of the action dialect: one of [`ErrorType`](crate::action::ErrorType),
    /// or the program's own, which clients of the dialect get unchanged (R-ACT-31).
    /// [`with_data`](Self::with_data) sets its `details`. MCP clients get the text, and the same
    /// error as structured content.
    ///
    /// ```
    /// use mcpbolt::handler::HandlerError;
    /// let error = HandlerError::typed("PERMISSION_DENIED", "Write access denied to /data/file2.txt")
    ///     .with_code(403)
    ///     .with_help_url("https://example.com/access");
    /// assert_eq!(error.action_type(), Some("PERMISSION_DENIED"));
    /// ```
    pub fn typed(kind: impl fmt::Display, text: impl fmt::Display) -> Self {
        Self {
            action: Some(Box::new(ActionWords {
                kind: kind.to_string(),
                ..ActionWords::default()
            })),
            ..Self::new(text)
        }
    }

    /// The error's type in the action dialect, if it is [`typed`](Self::typed).
    pub fn action_type(&self) -> Option<&str> {
        Some(&self.action.as_ref()?.kind)
    }

    /// Sets a `code` other than the default of the type. Has no effect unless the error is
    /// [`typed`](Self::typed).
    #[must_use]
    pub fn with_code(mut self, code: u16) -> Self {
        if let Some(action) = &mut self.action {
            action.code = Some(code);
        }
        self
    }

    /// The code set by [`with_code`](Self::with_code).
    pub fn action_code(&self) -> Option<u16> {
        self.action.as_ref()?.code
    }

    /// Sets the URL of a help page. Has no effect unless the error is [`typed`](Self::typed).
    #[must_use]
    pub fn with_help_url(mut self, url: impl Into<String>) -> Self {
        if let Some(action) = &mut self.action {
            action.help_url = Some(url.into());
        }
        self
    }

    /// The URL set by [`with_help_url`](Self::with_help_url).
    pub fn help_url(&self) -> Option<&str> {
        self.action.as_ref()?.help_url.as_deref()
    }

    /// A failure with that text.
    pub fn new(text: impl fmt::Display) -> Self {
        Self::of(ErrorKind::Internal, text)
    }

    /// The requested thing does not exist, for example a resource that matches a template.
    pub fn not_found(text: impl fmt::Display) -> Self {
        Self::of(ErrorKind::ResourceNotFound, text)
    }

    /// The user rejected the request: for clients that deny a server the use of the model.
    pub fn rejected(text: impl fmt::Display) -> Self {
        Self::of(ErrorKind::Rejected, text)
    }

    /// The arguments are wrong.
    pub fn invalid(text: impl fmt::Display) -> Self {
        Self::of(ErrorKind::InvalidParams, text)
    }

    pub(crate) fn of(kind: ErrorKind, text: impl fmt::Display) -> Self {
        let text = text.to_string();
        Self {
            kind,
            text,
            of_protocol: false,
            data: None,
            action: None,
        }
    }

    /// Sets the `data` of a protocol error, a JSON value.
    #[must_use]
    pub fn with_data(mut self, data: &serde_json::Value) -> Self {
        self.data = Some(data.to_string().into());
        self
    }

    /// The `data` of a protocol error, as raw JSON.
    pub fn data(&self) -> Option<&str> {
        self.data.as_deref()
    }

    /// The kind of error on the wire.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A [`HandlerError`] that was [boxed](HandlerError::into_boxed) stays as it was.
impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        match error.into().downcast::<Boxed>() {
            Ok(boxed) => boxed.0,
            Err(error) => Self::new(with_sources(&*error)),
        }
    }
}

impl HandlerError {
    /// Makes this error an [`Error`], for functions that collect errors of all types in one. If such a function
    /// returns a `Box<dyn Error + Send + Sync>`, this error counts as what it was when a handler returns it; of
    /// errors in other types, such as `anyhow::Error`, only the text remains.
    pub fn into_boxed(self) -> Box<dyn Error + Send + Sync> {
        Box::new(Boxed(self))
    }
}

/// An error that a handler may return: a [`HandlerError`], or any error that converts into one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a handler",
    label = "not an error that threads can share",
    note = "the error of a handler implements `std::error::Error + Send + Sync`, or is `HandlerError`, a text, or an error of a crate such as anyhow",
    note = "instead of `Box<dyn Error>`, return `Box<dyn Error + Send + Sync>` or `HandlerError`"
)]
pub trait IntoHandlerError {
    /// Converts into the error that is answered.
    fn into_handler_error(self) -> HandlerError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<HandlerError>> IntoHandlerError for E {
    fn into_handler_error(self) -> HandlerError {
        self.into()
    }
}

/// A handler's error as an [`Error`], which [`HandlerError`] is not, since every [`Error`] converts into it.
#[derive(Debug)]
struct Boxed(HandlerError);

impl fmt::Display for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Boxed {}

/// The texts of an error and its sources: `no price: cannot read prices.txt`. Skips the sources that an error
/// repeats in its own text.
fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Wrapped(&'static str, std::io::Error);

    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Wrapped {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    #[test]
    fn the_text_of_an_error_names_its_sources_once() {
        let wrapped = |text| Wrapped(text, std::io::Error::other("the disk is gone"));
        let error = HandlerError::from(wrapped("no price"));
        assert_eq!(error.to_string(), "no price: the disk is gone");
        let error = HandlerError::from(wrapped("no price, for the disk is gone"));
        assert_eq!(error.to_string(), "no price, for the disk is gone");
    }

    #[test]
    fn an_error_that_was_boxed_is_what_it_was() {
        let error = HandlerError::typed("CONFLICT", "taken").with_code(409);
        assert_eq!(HandlerError::from(error.clone().into_boxed()), error);
        assert_eq!(HandlerError::from("b is zero").to_string(), "b is zero");
    }
}
