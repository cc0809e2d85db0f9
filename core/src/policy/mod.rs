//! Access control for a server: permissions, rate limits, quotas, timeouts, verification of clients,
//! redaction and audit. The same rules apply to every client, over every transport.
//!
//! A server is built with a [`Policy`]. Requests are checked against it before any other processing;
//! answers pass it before they are written. A server without a policy pays for one check of an empty
//! field per request.
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
mod awaited_verifier;
mod clients;
#[cfg(feature = "consent-proxy")]
mod consent;
mod glob;
mod interceptor;
#[cfg(feature = "jwt")]
mod jwt;
#[cfg(feature = "jwt")]
mod jwt_keys;
#[cfg(feature = "jwt")]
mod jwt_settings;
mod per_client;
mod permissions;
mod queue;
mod redact;
#[cfg(feature = "resource-server")]
mod resource;
mod scopes;
mod settings;
mod shared_counts;
mod succeeding;
#[cfg(any(feature = "jwt", feature = "resource-server"))]
mod texts;
mod verifier;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub use self::audit::{AuditEvent, AuditOutcome};
pub(crate) use self::awaited_verifier::{TOO_SLOW, Verification};
pub(crate) use self::interceptor::{RequestInterceptor, Subject};
#[cfg(feature = "jwt")]
pub use self::jwt::{Jwt, JwtAlgorithm, JwtBuilder, JwtError, JwtKeys};
pub use self::permissions::{Patterns, Permissions};
pub use self::queue::{AuditQueue, WhenFull};
#[cfg(feature = "settings")]
pub(crate) use self::redact::MASK;
pub use self::redact::Redaction;
#[cfg(feature = "resource-server")]
pub(crate) use self::resource::{IssuerFetch, IssuerFetched, TokenRequest};
#[cfg(feature = "resource-server")]
pub use self::resource::{ProofUse, ResourceError, ResourceServer, ResourceServerBuilder};
pub use self::verifier::{ApiKeys, Credentials};

use self::audit::Sink;
use self::awaited_verifier::AwaitedVerifier;
use self::per_client::{Quotas, Rates};
use self::scopes::Scopes;
use self::shared_counts::SharedCounts;
#[cfg(feature = "consent-proxy")]
pub use mcpbolt_oauth::proxy::{
    ConsentProxy, ConsentProxyError, ConsentProxyOptions, ProxyToken, Upstream,
};

use self::verifier::Verifier;
use crate::connection::{Limited, Principal, Rejection, RequestSource};
use crate::limits::{Quota, Rate, VERIFIER_TIMEOUT, WRONG_CREDENTIALS};
use crate::mcp::{ErrorKind, Method};

/// The rules of a server. See the [module documentation](self).
#[derive(Debug, Default)]
pub struct Policy {
    permissions: Option<Permissions>,
    rates: Option<Arc<Rates>>,
    quotas: Option<Arc<Quotas>>,
    shared_counts: OnceLock<SharedCounts>,
    tool_timeout: Option<Duration>,
    timeouts: BTreeMap<String, Duration>,
    sinks: Vec<Sink>,
    /// The queues of those sinks that have one.
    queues: Vec<AuditQueue>,
    /// The queue set in JSON.
    queue: Option<AuditQueue>,
    traces: bool,
    keeps_arguments: bool,
    redaction: Redaction,
    /// Counts wrong credentials, by source.
    wrong: OnceLock<Arc<Rates>>,
    /// At most one of these two is set.
    verifier: Option<Verifier>,
    awaited: Option<AwaitedVerifier>,
    verifier_timeout: Option<Duration>,
    /// The verifier of tokens, if the policy was read from JSON with `jwt`.
    #[cfg(feature = "jwt")]
    tokens: Option<Jwt>,
    scopes: Scopes,
    #[cfg(feature = "resource-server")]
    resource: Option<ResourceServer>,
    /// The issuer of its tokens, if that is part of this server.
    #[cfg(feature = "consent-proxy")]
    consent: Option<std::sync::Arc<mcpbolt_oauth::proxy::ConsentProxy>>,
    /// Verifies tokens by the resource server on carriers other than HTTP.
    #[cfg(feature = "resource-server")]
    bearer: Option<AwaitedVerifier>,
}

impl Policy {
    /// Creates a policy that allows everything without limits. It masks credentials in error messages
    /// and failures of tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets clients call and read only what `permissions` allow. Everything else does not exist for any
    /// client: lists leave it out, and requests for it are answered like requests for something unknown
    /// (R-PER-05). A [profile](crate::mcp::Profile) that has an error for it shows such entries and
    /// answers that they are denied.
    #[must_use]
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = Some(permissions);
        self
    }

    /// Limits how often each client sends requests. A client is a [`RequestSource`]: its principal if known,
    /// else its address, however many connections and sessions it opens. Clients without an address
    /// (stdin, Unix sockets) count as one client.
    ///
    /// Above the rate, a tool call gets a result with `isError`, and any other request an error; over
    /// HTTP every request gets status 429. At most
    /// [`MAX_RATED_CLIENTS`](crate::limits::MAX_RATED_CLIENTS) clients are remembered; beyond that,
    /// those that sent the fewest requests are forgotten.
    #[must_use]
    pub fn rate(mut self, rate: Rate) -> Self {
        self.rates = Some(Arc::new(Rates::new(rate)));
        self
    }

    /// Limits how many tool calls each client may make in a period, whatever their outcome. Clients are
    /// told apart as for [`rate`](Self::rate); a call that the client is not allowed to make does not
    /// count. Calls are counted in this process, unless counts are [shared](Self::share).
    ///
    /// Above the quota, a tool call gets a result with `isError`, over HTTP status 429; an action is
    /// refused as `QUOTA_EXCEEDED`, with the rest of the period as `retry_after_seconds`. At most
    /// [`MAX_RATED_CLIENTS`](crate::limits::MAX_RATED_CLIENTS) clients are remembered; beyond that,
    /// those that made the fewest calls are forgotten.
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
        self.quotas = Some(Arc::new(Quotas::new(quota)));
        self
    }

    /// Limits how long a call of any tool may take. After that time its handler is cancelled. Does not
    /// limit tasks that a call has become.
    #[must_use]
    pub fn tool_timeout(mut self, timeout: Duration) -> Self {
        self.tool_timeout = Some(timeout);
        self
    }

    /// Limits how long a call of one tool may take, in place of [`tool_timeout`](Self::tool_timeout).
    /// The limit in the [`Permissions`] applies in addition.
    #[must_use]
    pub fn timeout_of(mut self, tool: impl Into<String>, timeout: Duration) -> Self {
        self.timeouts.insert(tool.into(), timeout);
        self
    }

    /// Verifies clients with `verify`, before anything is done for them. `verify` maps the client's
    /// credentials (an API key, a token or a certificate) to a principal, or says why not: a text refuses
    /// them, [`Rejection::Unavailable`] says that there is no verdict, and so does a panic. A client without
    /// credentials is passed as [`Credentials::None`]; `verify` may accept or refuse it. `verify` is not called
    /// for a client that the transport has verified already.
    ///
    /// Over HTTP, the credentials are the request's `Authorization: Bearer` or `X-API-Key`, or the
    /// certificate of the TLS connection. A client that is refused gets status 401, one without a verdict 503 with
    /// `Retry-After`; only clients of actions get the reason. Wrong credentials count against the address they
    /// come from, at the [`rate`](Self::rate), or at [`WRONG_CREDENTIALS`] without one. Above it, wrong credentials
    /// get status 429; right ones from that address are still accepted. The audit records each rejection.
    ///
    /// On other transports, the credentials are `auth` in the metadata of each action or in the `_meta`
    /// of each request: `{"type": "bearer", "token": …}` or `{"type": "api_key", "key": …}`. The error has the reason;
    /// without a verdict it is one of an overloaded server, with `retryAfter`.
    ///
    /// With a verifier, a tool call is also refused if its arguments contain a text under a name that
    /// suggests credentials and that the tool's input schema does not declare. Tools whose schema may
    /// declare properties elsewhere than at its root, for example by `$ref` or `allOf`, are not checked
    /// (R-AUX-01).
    ///
    /// ```
    /// use mcpbolt::connection::Principal;
    /// use mcpbolt::policy::{Credentials, Policy};
    /// let policy = Policy::new()
    ///     .verifier(|credentials| match credentials {
    ///         Credentials::Bearer("t-1f9a") => Ok(Principal::new("alice").with_scopes(["files:write"])),
    ///         Credentials::None => Ok(Principal::new("anybody")),
    ///         _ => Err("these credentials are not known"),
    ///     })
    ///     .scope("file.write", "files:write");
    /// ```
    #[must_use]
    pub fn verifier<E: Into<Rejection>>(
        mut self,
        verify: impl Fn(&Credentials<'_>) -> Result<Principal, E> + Send + Sync + 'static,
    ) -> Self {
        self.verifier = Some(Verifier::new(verify));
        self.awaited = None;
        self
    }

    /// Verifies clients as [`verifier`](Self::verifier) does, by a future, for credentials that are verified elsewhere,
    /// such as tokens that an authorization server introspects (RFC 7662). `verify` is called on the driver's thread and
    /// must not block.
    ///
    /// A request waits for its own verification only. Over HTTP its future is polled where the request is, on tokio, before
    /// the body is read; elsewhere it runs where handlers do. It is dropped when the client disconnects or cancels, and after
    /// [`verifier_timeout`](Self::verifier_timeout). Then there is no verdict, as after a panic.
    ///
    /// ```
    /// use mcpbolt::connection::Principal;
    /// use mcpbolt::policy::{Credentials, Policy};
    /// # async fn introspect(token: String) -> Result<Principal, String> { Ok(Principal::new(token)) }
    /// let policy = Policy::new().async_verifier(|credentials| {
    ///     let token = match credentials {
    ///         Credentials::Bearer(token) => Some((*token).to_owned()),
    ///         _ => None,
    ///     };
    ///     async move { introspect(token.ok_or("a token is needed")?).await }
    /// });
    /// ```
    #[must_use]
    pub fn async_verifier<F, E>(
        mut self,
        verify: impl Fn(&Credentials<'_>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Principal, E>> + Send + 'static,
        E: Into<Rejection>,
    {
        self.awaited = Some(AwaitedVerifier::new(verify));
        self.verifier = None;
        self
    }

    /// Limits how long an [async verifier](Self::async_verifier) may take for one request; [`VERIFIER_TIMEOUT`] by
    /// default.
    #[must_use]
    pub fn verifier_timeout(mut self, timeout: Duration) -> Self {
        self.verifier_timeout = Some(timeout);
        self
    }

    /// Lets a client call `tool` only if it was granted `scope`, in addition to other scopes that the
    /// tool requires. Other clients are told which scopes they lack, over HTTP with status 403
    /// (R-PER-05).
    #[must_use]
    pub fn scope(mut self, tool: impl Into<String>, scope: impl Into<String>) -> Self {
        let required = self.scopes.tools.entry(tool.into()).or_default();
        required.push(scope.into());
        self
    }

    /// Has lists leave out the tools, resources and prompts for which the caller lacks scopes. Without this,
    /// lists show them, so that a client can see what it may ask for (R-AUS-06).
    #[must_use]
    pub fn filter_lists(mut self) -> Self {
        self.scopes.filter_lists = true;
        self
    }

    /// Lets a client read, or subscribe to, resources whose URI matches `pattern` only if it was granted
    /// `scope`, as [`scope`](Self::scope) does for tools. `*` matches anything within one path segment, `**`
    /// anything.
    #[must_use]
    pub fn resource_scope(mut self, pattern: impl Into<String>, scope: impl Into<String>) -> Self {
        let required = self.scopes.resources.entry(pattern.into()).or_default();
        required.push(scope.into());
        self
    }

    /// Lets a client get `prompt` only if it was granted `scope`, as [`scope`](Self::scope) does for tools.
    #[must_use]
    pub fn prompt_scope(mut self, prompt: impl Into<String>, scope: impl Into<String>) -> Self {
        let required = self.scopes.prompts.entry(prompt.into()).or_default();
        required.push(scope.into());
        self
    }

    /// Says that who was granted `broad` holds `narrow`, too, and whatever that implies (R-AUS-08). Scopes
    /// imply nothing by their names.
    #[must_use]
    pub fn scope_implies(mut self, broad: impl Into<String>, narrow: impl Into<String>) -> Self {
        let implied = self.scopes.implied.entry(broad.into()).or_default();
        implied.push(narrow.into());
        self
    }

    /// Calls `report` for each call, read, prompt, completion and subscription when it is answered.
    /// Runs on the thread that answers and must not block; use [a queue](Self::audit_queued) for an
    /// audit that may block.
    #[must_use]
    pub fn audit(mut self, report: impl Fn(&AuditEvent<'_>) + Send + Sync + 'static) -> Self {
        self.sinks.push(Sink::new(report));
        self
    }

    /// Sends audit events to `tracing`, with target `mcpbolt::audit`. Does nothing without the feature
    /// `tracing`.
    #[must_use]
    pub fn audit_to_tracing(mut self) -> Self {
        self.traces = true;
        self
    }

    /// Includes the arguments in audit events, with credentials masked.
    #[must_use]
    pub fn audit_arguments(mut self) -> Self {
        self.keeps_arguments = true;
        self
    }

    /// Sets what is masked in errors, failures of tools and audit events.
    #[must_use]
    pub fn redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// The permissions; `None` if everything is allowed.
    pub(crate) fn allowed(&self) -> Option<&Permissions> {
        self.permissions.as_ref()
    }

    /// Checks that the permissions allow the request.
    ///
    /// # Errors
    /// The kind of error that refuses it.
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
        #[cfg(feature = "resource-server")]
        if self.resource.is_some() {
            return true;
        }
        self.verifier.is_some() || self.verifies_later()
    }

    /// Whether verification takes time: see [`begin_verification`](Self::begin_verification).
    pub(crate) fn verifies_later(&self) -> bool {
        #[cfg(feature = "resource-server")]
        if self.resource.is_some() {
            return true;
        }
        self.awaited.is_some()
    }

    /// Begins to verify credentials, if that takes time, and says how long it may take.
    pub(crate) fn begin_verification(
        &self,
        credentials: &Credentials<'_>,
    ) -> Option<(Verification, Duration)> {
        let verification = self.verification(credentials)?;
        Some((verification, self.verification_limit()))
    }

    /// How long a verification may take.
    pub(crate) fn verification_limit(&self) -> Duration {
        self.verifier_timeout.unwrap_or(VERIFIER_TIMEOUT)
    }

    #[cfg(not(feature = "resource-server"))]
    fn verification(&self, credentials: &Credentials<'_>) -> Option<Verification> {
        Some(self.awaited.as_ref()?.begin(credentials))
    }

    /// Checks a principal that was verified on a carrier without headers, where a token is not proven to be that
    /// of its client.
    ///
    /// # Errors
    /// Why the principal is refused.
    pub(crate) fn checked(&self, who: Principal) -> Result<Principal, Rejection> {
        #[cfg(feature = "resource-server")]
        if self.resource.is_some() {
            if who.bound_key().or(who.bound_certificate()).is_some() {
                return Err(
                    "the credentials are bound to their client, which is not proven here".into(),
                );
            }
            if self.lacks_any(&who) {
                return Err("the credentials lack scopes that every request requires".into());
            }
        }
        Ok(who)
    }

    /// Verifies credentials at once.
    ///
    /// # Errors
    /// Why they are refused.
    pub(crate) fn verify(&self, credentials: &Credentials<'_>) -> Result<Principal, Rejection> {
        match &self.verifier {
            Some(verifier) => verifier.verify(credentials),
            None => Err("this server has no verifier of credentials".into()),
        }
    }

    /// All scopes that a request requires, separated by spaces, if `who` lacks any of them (R-AUS-06).
    pub(crate) fn lacks(
        &self,
        method: Method,
        name: &str,
        who: Option<&Principal>,
    ) -> Option<String> {
        self.scopes.lacks(method, name, who)
    }

    /// Whether a client may hear of changes of a resource: if it may read it.
    #[cfg(feature = "server")]
    pub(crate) fn may_watch(&self, uri: &str, who: Option<&Principal>) -> bool {
        let method = Method::Subscribe;
        self.admits(method, uri).is_ok() && self.lacks(method, uri, who).is_none()
    }

    /// Whether lists leave out what the caller lacks scopes for.
    pub(crate) fn filters_lists(&self) -> bool {
        self.scopes.filter_lists
    }

    /// Counts one request of `client`.
    ///
    /// # Errors
    /// The client is above its rate.
    pub(crate) fn take(&self, client: &RequestSource, now: Instant) -> Result<(), Limited> {
        let taken = self.rates.as_ref().map(|rates| rates.take(client, now));
        taken.unwrap_or(Ok(())).map_err(Limited::Rate)
    }

    /// The counts of wrong credentials.
    fn wrong(&self) -> &Arc<Rates> {
        let limit = || {
            let own = self.rates.as_ref().map(|rates| rates.limit());
            own.unwrap_or(WRONG_CREDENTIALS)
        };
        self.wrong.get_or_init(|| Arc::new(Rates::new(limit())))
    }

    /// Counts wrong credentials from `from`.
    ///
    /// # Errors
    /// If there were too many: how long until `from` is told again that they are wrong.
    pub(crate) fn count_wrong(&self, from: &RequestSource, now: Instant) -> Result<(), Duration> {
        match from {
            // Peers that cannot be told apart must not lock each other out.
            RequestSource::Unknown => Ok(()),
            from => self.wrong().take(from, now),
        }
    }

    /// Audits credentials from `from` that were refused for the reason `why` by this HTTP status, and counts them if they
    /// were guessed.
    ///
    /// # Errors
    /// As [`count_wrong`](Self::count_wrong).
    #[cfg(feature = "http")]
    pub(crate) fn refused(
        &self,
        from: &RequestSource,
        why: &str,
        (status, is_guess): (u16, bool),
        now: Instant,
    ) -> Result<(), Duration> {
        let taken = match is_guess {
            true => self.count_wrong(from, now),
            false => Ok(()),
        };
        if self.audits() {
            let why = match from {
                RequestSource::Address(from) => format!("from {from}: {why}"),
                _ => why.to_owned(),
            };
            let (outcome, code) = match taken {
                Ok(()) if status == 503 => (AuditOutcome::Failed, status),
                Ok(()) => (AuditOutcome::Denied, status),
                Err(_) => (AuditOutcome::Limited, 429),
            };
            self.tell(&AuditEvent {
                method: "",
                name: "",
                principal: None,
                id: "",
                revision: "",
                outcome,
                code: Some(code.into()),
                message: Some(&self.redaction.text(&why)),
                duration: Duration::ZERO,
                arguments: None,
                dropped: 0,
            });
        }
        taken
    }

    pub(crate) fn has_rates(&self) -> bool {
        self.rates.is_some()
    }

    /// Counts one tool call of `client`.
    ///
    /// # Errors
    /// The quota is used up.
    pub(crate) fn take_call(&self, client: &RequestSource, now: Instant) -> Result<(), Limited> {
        self.quotas.as_ref().map_or(Ok(()), |quotas| {
            let taken = quotas.take(client, now);
            taken.map_err(|wait| Limited::Quota(quotas.limit(), wait))
        })
    }

    pub(crate) fn has_quotas(&self) -> bool {
        self.quotas.is_some()
    }

    /// The time limit for a call of the tool: its own or the general one, but at most that of the
    /// permissions.
    pub(crate) fn limit(&self, tool: &str) -> Option<Duration> {
        let own = self.timeouts.get(tool).copied().or(self.tool_timeout);
        own.into_iter().chain(self.permitted_time()).min()
    }

    pub(crate) fn has_limits(&self) -> bool {
        self.tool_timeout.or(self.permitted_time()).is_some() || !self.timeouts.is_empty()
    }

    fn permitted_time(&self) -> Option<Duration> {
        self.permissions.as_ref()?.tool_timeout()
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
