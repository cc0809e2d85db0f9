//! What a handler reports when it fails.

use std::fmt;

use crate::mcp::ErrorKind;

/// A failure that a handler reports; its text goes to the peer. Any other failure (a panic) is
/// told without its text.
///
/// Every [`std::error::Error`] is one, so that `?` works in handlers that return
/// `Result<_, HandlerError>`. That of a tool is a result for the model to read; that of any other
/// handler is an error of the protocol, which has kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerError {
    kind: ErrorKind,
    text: String,
    of_protocol: bool,
    data: Option<Box<str>>,
    /// What it is in the action dialect, where the handler says so.
    action: Option<Box<ActionWords>>,
}

/// What clients of the action dialect are told of a failure beside its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ActionWords {
    kind: String,
    code: Option<u16>,
    help_url: Option<String>,
}

impl HandlerError {
    /// An error of the protocol from a tool, too, which the model does not read: what was asked
    /// cannot be answered at all.
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

    /// Whether it is an error of the protocol wherever it comes from.
    pub fn is_of_protocol(&self) -> bool {
        self.of_protocol
    }

    /// A failure of a type of the action dialect, one of [`ErrorType`](crate::action::ErrorType)
    /// or of your own, which its clients get as it is (R-ACT-31); [`with_data`](Self::with_data)
    /// gives its `details`. Clients of MCP get the text, and the same error as structured content.
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

    /// Its type in the action dialect, where it has one.
    pub fn action_type(&self) -> Option<&str> {
        Some(&self.action.as_ref()?.kind)
    }

    /// The same error, if it is [`typed`](Self::typed), with a `code` other than that of its type.
    #[must_use]
    pub fn with_code(mut self, code: u16) -> Self {
        if let Some(action) = &mut self.action {
            action.code = Some(code);
        }
        self
    }

    /// That code.
    pub fn action_code(&self) -> Option<u16> {
        self.action.as_ref()?.code
    }

    /// The same error, if it is [`typed`](Self::typed), with a page where to read more.
    #[must_use]
    pub fn with_help_url(mut self, url: impl Into<String>) -> Self {
        if let Some(action) = &mut self.action {
            action.help_url = Some(url.into());
        }
        self
    }

    /// That page.
    pub fn help_url(&self) -> Option<&str> {
        self.action.as_ref()?.help_url.as_deref()
    }

    /// A failure of that text.
    pub fn new(text: impl fmt::Display) -> Self {
        Self::of(ErrorKind::Internal, text)
    }

    /// What was asked for does not exist, for example a resource that matches a template.
    pub fn not_found(text: impl fmt::Display) -> Self {
        Self::of(ErrorKind::ResourceNotFound, text)
    }

    /// The user does not want it: what a client answers when a server may not use the model.
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

    /// The same error with `data`, a JSON value, for an error of the protocol to carry.
    #[must_use]
    pub fn with_data(mut self, data: &serde_json::Value) -> Self {
        self.data = Some(data.to_string().into());
        self
    }

    /// What an error of the protocol carries beside its text: raw JSON.
    pub fn data(&self) -> Option<&str> {
        self.data.as_deref()
    }

    /// What kind of failure it is on the wire.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: std::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}
