//! What a server allows, bounds, keeps quiet about and writes down: one set of rules, whoever
//! asks and whatever carries the answer out.
//!
//! A [`Policy`] is a value that a server is built with. Requests are held against it before
//! anything else is made of them; answers pass it before they are written. A server without one
//! pays a look at an empty field for each request.
//!
//! ```
//! use std::time::Duration;
//! use mcpbolt::limits::Rate;
//! use mcpbolt::policy::{Permissions, Policy};
//! use mcpbolt::server::{Arguments, Server, Tool};
//!
//! let mut permissions = Permissions::all();
//! permissions.tools.denied.push("erase".into());
//! let policy = Policy::new()
//!     .permissions(permissions)
//!     .rate(Rate { burst: 20, per_second: 5 })
//!     .tool_timeout(Duration::from_secs(30))
//!     .audit(|event| println!("{}", event.to_json()));
//! let server = Server::builder("disk", "1.0.0")
//!     .policy(policy)
//!     .tool(Tool::new("erase"), |_: Arguments, _| async { "erased" })
//!     .build()?;
//! # Ok::<(), mcpbolt::server::RegistryError>(())
//! ```

mod audit;
mod clients;
mod glob;
#[cfg(feature = "jwt")]
mod jwt;
mod permissions;
mod quotas;
mod rates;
mod redact;
mod settings;
mod verifier;
mod watched;

use std::collections::BTreeMap;
#[cfg(feature = "http")]
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub use self::audit::{AuditEvent, Outcome};
#[cfg(feature = "jwt")]
pub use self::jwt::Jwt;
pub use self::permissions::{Patterns, Permissions};
pub use self::redact::Redaction;
pub use self::verifier::{ApiKeys, Credentials};
pub(crate) use self::watched::{Asked, Watched};

use self::audit::Sink;
use self::quotas::Quotas;
use self::rates::Rates;
use self::verifier::Verifier;
use crate::connection::Principal;
use crate::limits::{Quota, Rate};
use crate::mcp::{ErrorKind, Method};

/// The rules of a server. See the [module](self).
#[derive(Debug, Default)]
pub struct Policy {
    permissions: Option<Permissions>,
    rates: Option<Rates>,
    quotas: Option<Quotas>,
    tool_timeout: Option<Duration>,
    timeouts: BTreeMap<String, Duration>,
    sinks: Vec<Sink>,
    traces: bool,
    keeps_arguments: bool,
    redaction: Redaction,
    clients: AtomicU64,
    verifier: Option<Verifier>,
    /// What tools take, by name.
    scopes: BTreeMap<String, Vec<String>>,
}

impl Policy {
    /// One that allows everything, without bounds, and masks credentials in what it says of
    /// failures.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets clients call and read only what these allow. What they do not allow is not there, for
    /// any client: lists leave it out, and whoever asks for it is told that there is no such thing
    /// (R-PER-05). A [profile](crate::mcp::Profile) that has a word for it shows it and says that it
    /// is denied.
    #[must_use]
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = Some(permissions);
        self
    }

    /// Bounds how often each client asks: who the carrier knows, by its principal; others by their
    /// connection, and together where a connection is no more than a request. Beyond it a call of a
    /// tool gives a failure to read, and over HTTP everything status 429.
    #[must_use]
    pub fn rate(mut self, rate: Rate) -> Self {
        self.rates = Some(Rates::new(rate));
        self
    }

    /// Bounds how many calls of tools each client may make in a period, whatever becomes of them; who a
    /// client is, [`rate`](Self::rate) says. A call that the client may not make does not count. Beyond
    /// it a call of a tool gives a failure to read, and over HTTP status 429; an action is refused as
    /// `QUOTA_EXCEEDED`, with what is left of the period as `retry_after_seconds`. Counted in this
    /// process, for at most [`MAX_RATED_CLIENTS`](crate::limits::MAX_RATED_CLIENTS) clients apart.
    ///
    /// ```
    /// use std::time::Duration;
    /// use mcpbolt::limits::Quota;
    /// use mcpbolt::policy::Policy;
    /// let day = Duration::from_secs(24 * 60 * 60);
    /// let policy = Policy::new().quota(Quota { calls: 1000, period: day });
    /// ```
    #[must_use]
    pub fn quota(mut self, quota: Quota) -> Self {
        self.quotas = Some(Quotas::new(quota));
        self
    }

    /// Bounds how long a call of any tool may take; then its handler is cancelled. Not how long a
    /// task may take that a call became.
    #[must_use]
    pub fn tool_timeout(mut self, timeout: Duration) -> Self {
        self.tool_timeout = Some(timeout);
        self
    }

    /// The same for one tool, whatever is said of all.
    #[must_use]
    pub fn timeout_of(mut self, tool: impl Into<String>, timeout: Duration) -> Self {
        self.timeouts.insert(tool.into(), timeout);
        self
    }

    /// Has `verify` say who asks, by what the client brings, before anything is done for it: an API
    /// key, a token, a certificate; its error is what a client of actions is told. Over HTTP these are the
    /// request's `Authorization: Bearer` or `X-API-Key`, or the certificate below it, and who is not
    /// known gets status 401. That is taken of the [`rate`](Self::rate) of the address that it comes
    /// from, which is not heard at all when that is used up (429), and the audit is told. Elsewhere
    /// these are the `auth` of the metadata of each action, or of the `_meta` of each request:
    /// `{"type": "bearer", "token": …}` or `{"type": "api_key", "key": …}`. Where somebody has
    /// verified the client before, it is not asked. A client that brings nothing is
    /// [`Credentials::None`], to be let in or not.
    ///
    /// Beside it, a text under a name of credentials is refused among the arguments of a tool whose
    /// schema, as far as it has properties in itself, does not name it (R-AUX-01).
    ///
    /// ```
    /// use mcpbolt::connection::Principal;
    /// use mcpbolt::policy::{Credentials, Policy};
    /// let policy = Policy::new()
    ///     .verifier(|credentials| match credentials {
    ///         Credentials::Bearer("t-1f9a") => Ok(Principal::new("alice").with_scopes(["files:write"])),
    ///         Credentials::None => Ok(Principal::new("anybody")),
    ///         _ => Err("these credentials are not known".into()),
    ///     })
    ///     .scope("file.write", "files:write");
    /// ```
    #[must_use]
    pub fn verifier(
        mut self,
        verify: impl Fn(&Credentials<'_>) -> Result<Principal, String> + Send + Sync + 'static,
    ) -> Self {
        self.verifier = Some(Verifier::new(verify));
        self
    }

    /// Lets only those call that tool to whom `scope` was granted, beside what else it takes. Others
    /// are told which scopes they lack, over HTTP with status 403 (R-PER-05).
    #[must_use]
    pub fn scope(mut self, tool: impl Into<String>, scope: impl Into<String>) -> Self {
        let needed = self.scopes.entry(tool.into()).or_default();
        needed.push(scope.into());
        self
    }

    /// Tells `report` of each call, read, prompt, completion and subscription when it is answered.
    /// On the thread that answers; must not block.
    #[must_use]
    pub fn audit(mut self, report: impl Fn(&AuditEvent<'_>) + Send + Sync + 'static) -> Self {
        self.sinks.push(Sink::new(report));
        self
    }

    /// The same as events of `tracing`, target `mcpbolt::audit`; nothing without the feature of
    /// that name.
    #[must_use]
    pub fn audit_to_tracing(mut self) -> Self {
        self.traces = true;
        self
    }

    /// Has the audit keep arguments, too: credentials masked, all the rest as it came.
    #[must_use]
    pub fn audit_arguments(mut self) -> Self {
        self.keeps_arguments = true;
        self
    }

    /// Says what is masked in errors, in failures of tools and in the audit.
    #[must_use]
    pub fn redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// The permissions, if not everything is allowed.
    pub(crate) fn allowed(&self) -> Option<&Permissions> {
        self.permissions.as_ref()
    }

    /// Whether that may be asked for at all.
    ///
    /// # Errors
    /// What kind of refusal it is.
    pub(crate) fn admits(&self, method: Method, name: &str) -> Result<(), ErrorKind> {
        let Some(permissions) = &self.permissions else {
            return Ok(());
        };
        let (may, kind) = match method {
            Method::CallTool => (permissions.may_call(name), ErrorKind::ToolDenied),
            Method::ReadResource | Method::Subscribe | Method::GetSkill | Method::ReadDirectory => {
                (permissions.may_read(name), ErrorKind::ResourceDenied)
            }
            _ => return Ok(()),
        };
        may.then_some(()).ok_or(kind)
    }

    pub(crate) fn has_verifier(&self) -> bool {
        self.verifier.is_some()
    }

    /// Who brings that.
    ///
    /// # Errors
    /// Why nobody is known to.
    pub(crate) fn verify(&self, credentials: &Credentials<'_>) -> Result<Principal, String> {
        match &self.verifier {
            Some(verifier) => verifier.verify(credentials),
            None => Err("nobody is known here".into()),
        }
    }

    /// The scopes of a tool, with a space between them, if `who` lacks one of them (R-AUS-06).
    pub(crate) fn lacks(
        &self,
        method: Method,
        name: &str,
        who: Option<&Principal>,
    ) -> Option<String> {
        let needed = self
            .scopes
            .get(name)
            .filter(|_| method == Method::CallTool)?;
        let granted = |scope: &String| who.is_some_and(|who| who.has_scope(scope));
        (!needed.iter().all(granted)).then(|| needed.join(" "))
    }

    /// Takes one request of `client`.
    ///
    /// # Errors
    /// How long until it may ask again.
    pub(crate) fn take(&self, client: &str, now: Instant) -> Result<(), Duration> {
        self.rates
            .as_ref()
            .map_or(Ok(()), |rates| rates.take(client, now))
    }

    /// Whether somebody there may try credentials: not when as many as may be asked for were wrong.
    ///
    /// # Errors
    /// How long until they may be tried again.
    #[cfg(feature = "http")]
    pub(crate) fn may_try(&self, from: Option<IpAddr>, now: Instant) -> Result<(), Duration> {
        // Who cannot be told from others keeps nobody out.
        match (&self.rates, from) {
            (Some(rates), Some(_)) => rates.look(&address(from), now),
            _ => Ok(()),
        }
    }

    /// Somebody there was refused before anything was read, for that reason; their credentials were
    /// wrong, or they were not even looked at.
    ///
    /// # Errors
    /// It was once too often: how long until they may be tried again.
    #[cfg(feature = "http")]
    pub(crate) fn refused(
        &self,
        from: Option<IpAddr>,
        why: Result<&str, Duration>,
        now: Instant,
    ) -> Result<(), Duration> {
        let taken = match why {
            Ok(_) => self.take(&address(from), now),
            Err(wait) => Err(wait),
        };
        if self.audits() {
            let why = why.unwrap_or("too many wrong credentials");
            let why = match from {
                Some(from) => format!("from {from}: {why}"),
                None => why.to_owned(),
            };
            let (outcome, code) = match taken {
                Ok(()) => (Outcome::Denied, 401),
                Err(_) => (Outcome::Limited, 429),
            };
            self.tell(&AuditEvent {
                method: "",
                name: "",
                principal: None,
                id: "",
                revision: "",
                outcome,
                code: Some(code),
                message: Some(&self.redaction.text(&why)),
                duration: Duration::ZERO,
                arguments: None,
            });
        }
        taken
    }

    pub(crate) fn has_rates(&self) -> bool {
        self.rates.is_some()
    }

    /// Takes one call of `client`.
    ///
    /// # Errors
    /// The quota that is used up, and how long until the next period.
    pub(crate) fn take_call(&self, client: &str, now: Instant) -> Result<(), (Quota, Duration)> {
        self.quotas.as_ref().map_or(Ok(()), |quotas| {
            let taken = quotas.take(client, now);
            taken.map_err(|wait| (quotas.quota(), wait))
        })
    }

    pub(crate) fn has_quotas(&self) -> bool {
        self.quotas.is_some()
    }

    /// A name for a client that has none.
    pub(crate) fn next_client(&self) -> String {
        format!("connection {}", self.clients.fetch_add(1, Relaxed))
    }

    /// How long a call of that tool may take.
    pub(crate) fn limit(&self, tool: &str) -> Option<Duration> {
        let own = self.timeouts.get(tool).copied().or(self.tool_timeout);
        let of_all = self
            .permissions
            .as_ref()
            .and_then(Permissions::tool_timeout);
        own.into_iter().chain(of_all).min()
    }

    pub(crate) fn has_limits(&self) -> bool {
        let of_all = self
            .permissions
            .as_ref()
            .and_then(Permissions::tool_timeout);
        self.tool_timeout.or(of_all).is_some() || !self.timeouts.is_empty()
    }

    fn audits(&self) -> bool {
        self.traces || !self.sinks.is_empty()
    }

    fn tell(&self, event: &AuditEvent<'_>) {
        if self.traces {
            audit::trace(event);
        }
        self.sinks.iter().for_each(|sink| sink.tell(event));
    }
}

/// The name under which wrong credentials from there are counted.
#[cfg(feature = "http")]
fn address(from: Option<IpAddr>) -> String {
    from.map_or_else(|| "addresses".to_owned(), |from| format!("address {from}"))
}
