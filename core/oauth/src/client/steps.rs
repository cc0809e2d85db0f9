//! What a login asks of its program, and what the program answers.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use super::credentials::ServerCredentials;
use super::error::{LoginError, LoginStage};

/// What a login needs next.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoginStep {
    /// Send this request; answer with [`LoginAnswer::Response`] or [`LoginAnswer::Failed`].
    Send(OAuthRequest),
    /// Say where the user's browser is to come back to; answer with [`LoginAnswer::RedirectUri`]. The value is
    /// the one that this client is registered with, if there is one. Using it again saves a registration.
    RedirectUri(Option<String>),
    /// Have the user open this page; answer with [`LoginAnswer::Callback`] once the browser came back.
    Authorize(AuthorizationPage),
    /// Show the user this code and the page where to enter it; answer with [`LoginAnswer::Continue`] at once.
    Device(DeviceCode),
    /// Get an assertion for this authorization server; answer with [`LoginAnswer::Assertion`].
    Assertion(AssertionRequest),
    /// Wait that long; answer with [`LoginAnswer::Continue`].
    Wait(Duration),
    /// The login is over.
    Done(Box<ServerCredentials>),
}

/// The answer to a [`LoginStep`].
#[non_exhaustive]
pub enum LoginAnswer {
    /// The response to a request, whatever its status.
    Response(OAuthResponse),
    /// Why there is no answer.
    Failed(String),
    /// Where the browser comes back to.
    RedirectUri(String),
    /// The address with which the browser came back, or its query alone.
    Callback(String),
    /// The assertion.
    Assertion(String),
    /// Go on.
    Continue,
}

/// An HTTP request of a login. Redirects are not followed, nothing is added but what HTTP needs. The
/// addresses that its host resolves to are checked with [`UrlGuard::allows`](super::UrlGuard::allows).
#[derive(Clone)]
pub struct OAuthRequest {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// The URL, exactly as it is to be requested.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body; empty for `GET`.
    pub body: String,
}

impl OAuthRequest {
    /// Longest body of a response, in bytes; one that is longer is answered with [`LoginAnswer::Failed`].
    pub const MAX_RESPONSE_BYTES: usize = 256 << 10;
}

/// Omits what may be secret.
impl std::fmt::Debug for OAuthRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let url = self.url.split('?').next().unwrap_or_default();
        write!(f, "OAuthRequest {{ {} {url}, .. }}", self.method)
    }
}

/// A response to an [`OAuthRequest`].
pub struct OAuthResponse {
    /// The status.
    pub status: u16,
    /// Names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl OAuthResponse {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(own, _)| own == name);
        header.map(|(_, value)| &**value)
    }
}

/// A page that the user opens to consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationPage {
    /// The page.
    pub url: String,
    /// Where the browser comes back to.
    pub redirect_uri: String,
    /// The value of `state` with which it comes back. Others with the same `redirect_uri` have another.
    pub state: String,
}

/// A code that the user enters on another device (RFC 8628).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCode {
    /// The code.
    pub user_code: String,
    /// The page where it is entered.
    pub verification_uri: String,
    /// The page with the code filled in.
    pub verification_uri_complete: Option<String>,
    /// How long the code is valid.
    pub expires_in: Duration,
}

/// Who an assertion is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssertionRequest {
    /// The issuer of the authorization server: the audience.
    pub issuer: String,
    /// The MCP server.
    pub resource: String,
}

#[derive(Default)]
struct Slot {
    step: Option<LoginStep>,
    answer: Option<LoginAnswer>,
    now: u64,
    is_keeping: bool,
}

/// Where a login leaves its steps and finds the answers.
#[derive(Clone, Default)]
pub(super) struct Mailbox(Arc<Mutex<Slot>>);

impl Mailbox {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take_step(&self) -> Option<LoginStep> {
        self.slot().step.take()
    }

    pub fn put_answer(&self, answer: Option<LoginAnswer>, now: u64) {
        let mut slot = self.slot();
        slot.answer = answer;
        slot.now = now;
    }

    /// Keeps what a server has issued.
    pub async fn keeping<T>(&self, work: impl Future<Output = T>) -> T {
        self.slot().is_keeping = true;
        let done = work.await;
        self.slot().is_keeping = false;
        done
    }

    /// Whether a server may have issued what is not kept yet.
    pub fn is_keeping(&self) -> bool {
        let slot = self.slot();
        slot.is_keeping || matches!(slot.answer, Some(LoginAnswer::Response(_)))
    }

    /// The time as of the last answer, in seconds since 1970.
    pub fn now(&self) -> u64 {
        self.slot().now
    }

    /// Asks for a step and waits for its answer.
    async fn ask(&self, stage: LoginStage, step: LoginStep) -> Result<LoginAnswer, LoginError> {
        self.slot().step = Some(step);
        let answer = poll_fn(|_| match self.slot().answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        });
        match answer.await {
            LoginAnswer::Failed(why) => Err(LoginError::new(stage, super::error::quoted(&why))),
            answer => Ok(answer),
        }
    }

    pub async fn send(
        &self,
        stage: LoginStage,
        request: OAuthRequest,
    ) -> Result<OAuthResponse, LoginError> {
        let answer = self.ask(stage, LoginStep::Send(request)).await;
        match answer.map_err(LoginError::away)? {
            LoginAnswer::Response(response) => Ok(response),
            _ => Err(unfit("a response")),
        }
    }

    pub async fn redirect_uri(&self, known: Option<String>) -> Result<String, LoginError> {
        match self
            .ask(LoginStage::Authorization, LoginStep::RedirectUri(known))
            .await?
        {
            LoginAnswer::RedirectUri(uri) => Ok(uri),
            _ => Err(unfit("a redirect URI")),
        }
    }

    pub async fn authorize(&self, page: AuthorizationPage) -> Result<String, LoginError> {
        match self
            .ask(LoginStage::Authorization, LoginStep::Authorize(page))
            .await?
        {
            LoginAnswer::Callback(callback) => Ok(callback),
            _ => Err(unfit("a callback")),
        }
    }

    pub async fn assertion(&self, request: AssertionRequest) -> Result<String, LoginError> {
        match self
            .ask(LoginStage::Token, LoginStep::Assertion(request))
            .await?
        {
            LoginAnswer::Assertion(assertion) => Ok(assertion),
            _ => Err(unfit("an assertion")),
        }
    }

    pub async fn show(&self, code: DeviceCode) -> Result<(), LoginError> {
        self.ask(LoginStage::Authorization, LoginStep::Device(code))
            .await
            .map(drop)
    }

    pub async fn wait(&self, time: Duration) -> Result<(), LoginError> {
        self.ask(LoginStage::Authorization, LoginStep::Wait(time))
            .await
            .map(drop)
    }
}

fn unfit(wanted: &str) -> LoginError {
    let why = format!("the program's answer is not {wanted}");
    LoginError::new(LoginStage::Options, why)
}
