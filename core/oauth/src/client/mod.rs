//! Logins of a client, as a state machine: it says what to send or to show, the program answers.
//!
//! ```text
//!   Occasion ─▶ Login ──▶ LoginStep::Send ────────▶ discovery, registration, tokens
//!     (401)       ▲  ├──▶ LoginStep::Authorize ───▶ the user's browser
//!                 │  ├──▶ LoginStep::Device ──────▶ a code for another device
//!          LoginAnswer ╰─▶ LoginStep::Done ───────▶ ServerCredentials: headers of requests
//! ```
//!
//! | step | specification |
//! |---|---|
//! | the MCP server's metadata: from the challenge, else well-known with path, else at the root | RFC 9728 |
//! | the authorization server's metadata, whose issuer is compared letter by letter | RFC 8414, OpenID Connect Discovery |
//! | the client: registered by hand, by a document at its own address, else dynamically | RFC 7591 |
//! | the grant: code with PKCE and `iss`, device, client credentials, assertions | RFC 7636, 9207, 8628, 7523, 8693 |
//! | tokens for exactly this server, bound to a key where that is asked for | RFC 8707, 9449 |
//!
//! Every URL that a server names is checked by a [`UrlGuard`] before it is used.

mod credentials;
mod device;
mod error;
mod flow;
mod grants;
mod guard;
mod jose;
mod metadata;
mod occasion;
mod options;
mod pin;
mod registration;
mod revocation;
mod scopes;
mod secret;
mod steps;
mod token;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

pub use self::credentials::ServerCredentials;
pub use self::error::{LoginError, LoginStage};
pub use self::guard::{UrlGuard, Zone};
pub use self::jose::DpopKey;
pub use self::occasion::Occasion;
pub use self::options::{Grant, IdentityProvider, LoginOptions, SigningKey};
pub use self::secret::Secret;
pub use self::steps::{
    AssertionRequest, AuthorizationPage, DeviceCode, LoginAnswer, LoginStep, OAuthRequest,
    OAuthResponse,
};

use self::flow::Flow;
use self::steps::Mailbox;
use crate::store::CredentialStore;

/// One login, or one refresh. It waits for nothing but the store; time is an argument.
///
/// Once a request is on its way, wait for its answer even if nobody wants the token any more: a refresh
/// token may be used up. While [`is_keeping`](Self::is_keeping), call [`next`](Self::next) to its end.
pub struct Login {
    flow: Pin<Box<dyn Future<Output = Result<ServerCredentials, LoginError>> + Send>>,
    mailbox: Mailbox,
}

impl Login {
    /// Begins a login at `now`, in seconds since 1970. What a server names is checked with `guard`.
    pub fn new(
        options: Arc<LoginOptions>,
        store: Arc<dyn CredentialStore>,
        guard: UrlGuard,
        occasion: Occasion,
        now: u64,
    ) -> Self {
        Self::of(|flow| flow.run(occasion), options, store, guard, now)
    }

    /// Begins to end the tokens of `credentials` at their authorization server (RFC 7009). Does nothing
    /// without a [`ServerCredentials::revocation_endpoint`].
    pub fn revoke(
        options: Arc<LoginOptions>,
        store: Arc<dyn CredentialStore>,
        guard: UrlGuard,
        credentials: ServerCredentials,
        now: u64,
    ) -> Self {
        let flow = |flow: Flow| flow.revoke(credentials);
        Self::of(flow, options, store, guard, now)
    }

    fn of<F>(
        course: impl FnOnce(Flow) -> F,
        options: Arc<LoginOptions>,
        store: Arc<dyn CredentialStore>,
        guard: UrlGuard,
        now: u64,
    ) -> Self
    where
        F: Future<Output = Result<ServerCredentials, LoginError>> + Send + 'static,
    {
        let mailbox = Mailbox::default();
        mailbox.put_answer(None, now);
        let flow = Flow {
            mailbox: mailbox.clone(),
            options,
            store,
            guard,
            first_use: Mutex::default(),
        };
        Self {
            flow: Box::pin(course(flow)),
            mailbox,
        }
    }

    /// The next step. Each but the last is [answered](Self::answer) before the next is asked for.
    ///
    /// # Errors
    /// Why there is no access token. The login is over then.
    ///
    /// # Cancel safety
    /// May be dropped and called again. If [`is_keeping`](Self::is_keeping) then, call it again before the
    /// login is dropped.
    pub async fn next(&mut self) -> Result<LoginStep, LoginError> {
        poll_fn(|cx| match self.flow.as_mut().poll(cx) {
            Poll::Ready(outcome) => {
                Poll::Ready(outcome.map(|done| LoginStep::Done(Box::new(done))))
            }
            Poll::Pending => match self.mailbox.take_step() {
                Some(step) => Poll::Ready(Ok(step)),
                None => Poll::Pending,
            },
        })
        .await
    }

    /// Whether a server has issued what the store does not have yet: a login that is dropped now loses it.
    pub fn is_keeping(&self) -> bool {
        self.mailbox.is_keeping()
    }

    /// Answers the last step at `now`.
    pub fn answer(&self, answer: LoginAnswer, now: u64) {
        self.mailbox.put_answer(Some(answer), now);
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(..)")
    }
}
