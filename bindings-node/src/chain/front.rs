//! The parts of a chain, as JavaScript describes them.

use std::sync::Arc;
use std::time::Duration;

use mcpbolt::chain::{self, HandoffInterests, Prefix};
use mcpbolt::io::Address;
use mcpbolt::settings::{self, ConnectSettings, ExternalSettings, Milliseconds, ServerSettings};
use napi::bindgen_prelude::{ClassInstance, Either, Function};
use napi_derive::napi;

use super::handoffs::Handoffs;
use super::rules::Rule;
use crate::child::ChildSettings;
use crate::entries::{Entries, policy};
use crate::error::{self, Result, misuse};
use crate::hosting::Host;
use crate::inbox::{Event, Inbox};
use crate::json::read;
use crate::kinds::Inbound;
use crate::link::{Link, Side};
use crate::login::Login;
use crate::telemetry::Telemetry;
use crate::verifier::Verifier;

/// The server at the end of a chain.
#[napi]
pub struct External(chain::External);

impl External {
    fn with(external: chain::External, settings: &str) -> Result<Self> {
        let settings: ExternalSettings<Milliseconds> = read(settings)?;
        Ok(Self(settings.apply(external)))
    }
}

#[napi]
impl External {
    /// The name, which stands in errors.
    #[napi(catch_unwind)]
    pub fn title(&self) -> String {
        self.0.name().to_owned()
    }

    /// The same server with a prefix.
    #[napi(catch_unwind)]
    pub fn prefixed(&self, prefix: String) -> Result<External> {
        let prefix = Prefix::new(prefix).map_err(error::request)?;
        Ok(External(self.0.clone().prefix(prefix)))
    }

    /// The same server with these rules before it, of which the first sees requests first.
    #[napi(catch_unwind)]
    pub fn ruled(&self, rules: Vec<ClassInstance<'_, Rule>>) -> External {
        let name = self.0.name().to_owned();
        let rules = rules.iter().map(|rule| rule.of_server(&name));
        External(rules.fold(self.0.clone(), chain::External::with))
    }
}

/// A server that is started as a child process.
#[napi(catch_unwind)]
pub fn external_command(name: Option<String>, child: String, settings: String) -> Result<External> {
    let child: ChildSettings = read(&child)?;
    let name = name.unwrap_or_else(|| Address::Stdio(vec![child.command.clone()]).public_name());
    let made = chain::External::command(name, move || child.command(None));
    External::with(made, &settings)
}

/// A server at an address.
#[napi(catch_unwind)]
pub fn external_at(
    name: Option<String>,
    address: String,
    options: String,
    login: Option<ClassInstance<'_, Login>>,
    settings: String,
) -> Result<External> {
    let address: Address = address.parse().map_err(misuse)?;
    let options: ConnectSettings<Milliseconds> = read(&options)?;
    let mut options = options.connect().map_err(error::io)?;
    options.http.authorization = login.map(|login| login.authorization());
    let name = name.unwrap_or_else(|| address.public_name());
    External::with(chain::External::at(name, address, options), &settings)
}

/// Another chain of this process.
#[napi(catch_unwind)]
pub fn external_front(name: String, front: &Front, settings: String) -> Result<External> {
    External::with(chain::External::chain(name, &front.own), &settings)
}

/// A server of this process at the end of a chain, and the link of its calls.
#[napi]
pub struct Within {
    external: Option<External>,
    link: Option<Link>,
}

#[napi]
impl Within {
    /// The end of the chain; returned only once.
    #[napi(catch_unwind)]
    pub fn external(&mut self) -> Option<External> {
        self.external.take()
    }

    /// The link; returned only once.
    #[napi(catch_unwind)]
    pub fn link(&mut self) -> Option<Link> {
        self.link.take()
    }
}

/// A server of this process. `is_own` says that the front stands for the server.
#[napi(catch_unwind)]
pub fn external_server(
    name: String,
    entries: &mut Entries,
    settings: String,
    is_own: bool,
    wake: Function<'_, (), ()>,
) -> Result<Within> {
    let served = entries.serve()?;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let side = Side::Server(served.live.clone());
    let hosting = Arc::new(Host::new(served, inbox.clone()));
    let external = chain::External::hosted(name, hosting);
    let external = match is_own {
        true => external.as_own(),
        false => external,
    };
    let external = External::with(external, &settings)?;
    let ended = inbox.clone();
    let link = Link::new(inbox, side, move || {
        let report = "{\"reason\":\"stopped\"}".to_owned();
        ended.push(Event::text(Inbound::Ended, report));
    });
    Ok(Within {
        external: Some(external),
        link: Some(link),
    })
}

/// The limits of a front.
#[napi(object)]
pub struct FrontLimits {
    pub max_hops: u32,
    /// In milliseconds.
    pub patience: Option<u32>,
}

/// Which messages middleware of the program sees.
#[napi(object)]
pub struct Interests {
    pub requests: bool,
    pub notifications: bool,
}

/// Checks the options of a server.
#[napi(catch_unwind)]
pub fn check_external(settings: String) -> Result<()> {
    read::<ExternalSettings<Milliseconds>>(&settings).map(drop)
}

/// The name and the prefix of a server that is joined to a front.
#[napi(object)]
pub struct Joined {
    pub name: String,
    pub prefix: Option<String>,
}

/// Checks that servers can be joined to one front.
#[napi(catch_unwind)]
pub fn check_joined(servers: Vec<Joined>) -> Result<()> {
    let servers = servers.into_iter().map(|one| (one.name, one.prefix));
    settings::check_joined(servers.collect()).map_err(error::request)
}

/// A front before these servers.
fn joined(externals: &[ClassInstance<'_, External>]) -> Result<chain::Front> {
    let mut externals = externals.iter().map(|external| external.0.clone());
    let first = externals
        .next()
        .ok_or_else(|| misuse("a front has at least one server"))?;
    externals
        .try_fold(chain::Front::new(first), chain::Front::join)
        .map_err(error::request)
}

/// A front that stands for a server, which is the first of `externals`: it speaks in the name of the server and enforces its policy.
#[napi(catch_unwind)]
pub fn front_for_server(
    externals: Vec<ClassInstance<'_, External>>,
    entries: &mut Entries,
) -> Result<Front> {
    let served = entries.serve()?;
    let mut own = joined(&externals)?.introducing(&served.config);
    if let Some(telemetry) = entries.telemetry() {
        own = own.with(telemetry.clone());
    }
    if let Some(policy) = served.policy {
        own = own.policy(policy);
    }
    Ok(Front {
        own: Arc::new(own),
        middleware: Vec::new(),
        verifier: None,
    })
}

/// The side of a chain that clients talk to.
#[napi]
pub struct Front {
    pub(crate) own: Arc<chain::Front>,
    middleware: Vec<u32>,
    verifier: Option<Verifier>,
}

#[napi]
impl Front {
    /// `externals` are the servers that are joined, at least one. `settings` is JSON, of which the name and the policy are used.
    /// `middleware` is the engine's or the program's, whose messages go through `handoffs`. `verify` gets the credentials of clients:
    /// see [`Verifier`]. `telemetry` is told of requests and sessions.
    #[napi(constructor, catch_unwind)]
    #[allow(
        clippy::too_many_arguments,
        reason = "they are the parts of a front, as in Python"
    )]
    pub fn new(
        externals: Vec<ClassInstance<'_, External>>,
        middleware: Vec<Either<ClassInstance<'_, Rule>, Interests>>,
        handoffs: &mut Handoffs,
        settings: String,
        audit: Option<Function<'_, String, ()>>,
        verify: Option<Function<'_, String, ()>>,
        limits: FrontLimits,
        telemetry: Option<ClassInstance<'_, Telemetry>>,
    ) -> Result<Self> {
        let settings: ServerSettings<Milliseconds> = read(&settings)?;
        let mut own = joined(&externals)?.max_hops(limits.max_hops.into());
        if let Some(telemetry) = telemetry {
            let telemetry = telemetry.observer.clone();
            own = own.observer(Arc::new(telemetry.clone())).with(telemetry);
        }
        if let Some(patience) = limits.patience {
            own = own.patience(Duration::from_millis(patience.into()));
        }
        let verifier = verify.as_ref().map(Verifier::new).transpose()?;
        if let Some(policy) = policy(&settings, verifier.as_ref(), audit.as_ref())? {
            own = own.policy(policy);
        }
        let mut numbers = Vec::new();
        for one in middleware {
            own = match one {
                Either::A(rule) => own.with(rule.of_server(&settings.name)),
                Either::B(sees) => {
                    let (number, handoff) = handoffs.add(HandoffInterests {
                        requests: sees.requests,
                        notifications: sees.notifications,
                    });
                    numbers.push(number);
                    own.with(handoff)
                }
            };
        }
        Ok(Self {
            own: Arc::new(own),
            middleware: numbers,
            verifier,
        })
    }

    /// The numbers of the program's middleware.
    #[napi(catch_unwind)]
    pub fn middleware(&self) -> Vec<u32> {
        self.middleware.clone()
    }

    /// Gives the verdict on credentials: see [`Entries::verified`].
    #[napi(catch_unwind)]
    pub fn verified(&self, number: u32, granted: Option<String>, failed: bool) {
        if let Some(verifier) = &self.verifier {
            verifier.end(number, granted.as_deref(), failed);
        }
    }
}
