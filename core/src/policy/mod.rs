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
mod glob;
mod permissions;
mod rates;
mod redact;
mod settings;
mod watched;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub use self::audit::{AuditEvent, Outcome};
pub use self::permissions::{Patterns, Permissions};
pub use self::redact::Redaction;
pub(crate) use self::watched::{Asked, Watched};

use self::audit::Sink;
use self::rates::Rates;
use crate::limits::Rate;
use crate::mcp::{ErrorKind, Method};

/// The rules of a server. See the [module](self).
#[derive(Debug, Default)]
pub struct Policy {
    permissions: Option<Permissions>,
    rates: Option<Rates>,
    tool_timeout: Option<Duration>,
    timeouts: BTreeMap<String, Duration>,
    sinks: Vec<Sink>,
    traces: bool,
    keeps_arguments: bool,
    redaction: Redaction,
    clients: AtomicU64,
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

    /// Takes one request of `client`.
    ///
    /// # Errors
    /// How long until it may ask again.
    pub(crate) fn take(&self, client: &str, now: Instant) -> Result<(), Duration> {
        self.rates
            .as_ref()
            .map_or(Ok(()), |rates| rates.take(client, now))
    }

    pub(crate) fn has_rates(&self) -> bool {
        self.rates.is_some()
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
