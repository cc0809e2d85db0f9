//! Why there is no access token.

use std::fmt;

/// Maximum number of characters of a server's words that an error quotes.
const SAID_CHARS: usize = 200;

/// The code of an error that a new login would end. No server says it.
const LOGIN_NEEDED: &str = "login needed";

/// The part of a login that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoginStage {
    /// The options of the login, or an answer of the program.
    Options,
    /// Finding out which authorization servers an MCP server trusts (RFC 9728).
    Resource,
    /// Reading the metadata of the authorization server (RFC 8414, OpenID Connect Discovery).
    Discovery,
    /// Registering the client (RFC 7591).
    Registration,
    /// The user's consent: in a browser, or on another device (RFC 8628).
    Authorization,
    /// Asking for an access token.
    Token,
    /// Replacing an access token that has ended.
    Refresh,
    /// More scopes for one operation.
    StepUp,
    /// Ending tokens that nobody needs any more.
    Revocation,
    /// The store of credentials.
    Store,
}

impl LoginStage {
    /// A stable identifier for programs, such as `registration`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Options => "options",
            Self::Resource => "resource",
            Self::Discovery => "discovery",
            Self::Registration => "registration",
            Self::Authorization => "authorization",
            Self::Token => "token",
            Self::Refresh => "refresh",
            Self::StepUp => "step_up",
            Self::Revocation => "revocation",
            Self::Store => "store",
        }
    }
}

/// Why there is no access token: the stage, what the server said, and what to do. Never contains secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginError {
    /// The part of the login that failed.
    pub stage: LoginStage,
    /// The error code that the authorization server gave, such as `access_denied`.
    pub code: Option<Box<str>>,
    why: Box<str>,
    source: Source,
}

/// Who is the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// This program, or what a server sent in a successful answer.
    Own,
    /// The server cannot be reached, or does not work.
    Away,
    /// The server refuses the request.
    Refusal,
}

impl LoginError {
    /// An error with its reason, and what to do about it.
    pub fn new(stage: LoginStage, why: impl Into<Box<str>>) -> Self {
        Self {
            stage,
            code: None,
            why: why.into(),
            source: Source::Own,
        }
    }

    /// The same error, of a server that cannot be reached or does not work.
    pub(super) fn away(self) -> Self {
        Self {
            source: Source::Away,
            ..self
        }
    }

    /// The same error, of a server that refuses the request.
    pub(super) fn refusal(self) -> Self {
        Self {
            source: Source::Refusal,
            ..self
        }
    }

    /// Whether the server refuses the request, so that the same one does not succeed later.
    pub(super) fn is_refusal(&self) -> bool {
        self.source == Source::Refusal
    }

    /// Whether the same request may succeed later, since the server gave no answer of its own.
    pub(super) fn is_away(&self) -> bool {
        self.source == Source::Away
    }

    /// An error that the server named: its code and description, and what to do.
    pub(super) fn said(stage: LoginStage, whose: &str, code: &str, description: &str) -> Self {
        let (code, description) = (quoted(code), quoted(description));
        let why = match &*description {
            "" => format!("{whose} answered {code}"),
            description => format!("{whose} answered {code}: {description}"),
        };
        let todo = todo(&code);
        Self {
            code: Some(code.into()),
            ..Self::new(stage, why).and(todo)
        }
    }

    /// The login is over, and nothing can replace it without a new one.
    pub(super) fn login_needed() -> Self {
        Self {
            code: Some(LOGIN_NEEDED.into()),
            ..Self::new(LoginStage::Refresh, "the login is over; log in again")
        }
    }

    /// Whether a new login is needed, since what is left of the last one cannot be refreshed.
    pub fn is_login_needed(&self) -> bool {
        self.stage == LoginStage::Refresh && self.is(LOGIN_NEEDED)
    }

    /// Whether the server gave that error code.
    pub fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// The same error with further words, such as what to do.
    #[must_use]
    pub fn and(self, more: &str) -> Self {
        let why = format!("{}; {more}", self.why).into();
        Self { why, ..self }
    }
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = match self.stage {
            LoginStage::Options => "setting up the login",
            LoginStage::Resource => "finding the authorization server",
            LoginStage::Discovery => "reading the authorization server's metadata",
            LoginStage::Registration => "registering the client",
            LoginStage::Authorization => "asking the user for consent",
            LoginStage::Token => "asking for an access token",
            LoginStage::Refresh => "refreshing the access token",
            LoginStage::StepUp => "asking for more scopes",
            LoginStage::Revocation => "revoking the tokens",
            LoginStage::Store => "using the stored credentials",
        };
        let what = match self.stage {
            LoginStage::Revocation => "logout",
            _ => "login",
        };
        write!(f, "{what} failed while {doing}: {}", self.why)
    }
}

impl std::error::Error for LoginError {}

/// What to do about an error that an authorization server names.
fn todo(code: &str) -> &'static str {
    match code {
        "access_denied" => "log in again if that was a mistake",
        "expired_token" => "the code was not entered in time; log in again",
        "invalid_grant" => "log in again",
        "invalid_client" => {
            "log in again; check the id and secret of a client that was registered by hand"
        }
        "invalid_scope" => "ask for other scopes, or have these allowed there",
        "invalid_target" => "have the MCP server's URL allowed there",
        "invalid_redirect_uri" => "give a redirect URI that this authorization server allows",
        "unauthorized_client" | "unsupported_grant_type" => {
            "have this way to log in allowed for the client there, or use another"
        }
        "server_error" | "temporarily_unavailable" => "try again later",
        _ => "ask the operator of the authorization server",
    }
}

/// The words of somebody else: without control characters, and not many.
pub(super) fn quoted(said: &str) -> String {
    let said = said.trim().chars().take(SAID_CHARS);
    said.map(|c| if c.is_control() { ' ' } else { c }).collect()
}
