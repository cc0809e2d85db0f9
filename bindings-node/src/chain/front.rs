//! The parts of a chain, as JavaScript describes them.

use std::sync::Arc;
use std::time::Duration;

use mcpbolt::chain::{self, HandoffInterests, Prefix};
use mcpbolt::io::Address;
use mcpbolt::settings::{self, ConnectSettings, ExternalSettings, Milliseconds, ServerSettings};
use napi::bindgen_prelude::{ClassInstance, Function};
use napi_derive::napi;

use super::desk::Desk;
use crate::child::ChildSettings;
use crate::entries::{Entries, audited};
use crate::error::{self, Result, misuse};
use crate::hosting::Host;
use crate::inbox::{Event, Inbox};
use crate::json::read;
use crate::kinds::Inbound;
use crate::link::{Link, Side};
use crate::login::Login;

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

/// A server of this process.
#[napi(catch_unwind)]
pub fn external_server(
    name: String,
    entries: &mut Entries,
    settings: String,
    wake: Function<'_, (), ()>,
) -> Result<Within> {
    let served = entries.serve()?;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let side = Side::Server(served.live.clone());
    let hosting = Arc::new(Host::new(served, inbox.clone(), false));
    let external = External::with(chain::External::hosted(name, hosting), &settings)?;
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

/// A part of a chain that sees its messages: the engine's own, or the program's.
#[napi(object)]
pub struct Seat {
    /// The prefix that the engine gives to names.
    pub prefix: Option<String>,
    pub sees_requests: bool,
    pub sees_notifications: bool,
}

/// Checks a prefix.
#[napi(catch_unwind)]
pub fn check_prefix(prefix: String) -> Result<()> {
    Prefix::new(prefix).map(drop).map_err(error::request)
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

/// The side of a chain that clients talk to.
#[napi]
pub struct Front {
    pub(crate) own: Arc<chain::Front>,
    seats: Vec<u32>,
}

#[napi]
impl Front {
    /// `externals` are the servers that are joined, at least one. `settings` is JSON, of which the policy is used. The messages
    /// that the program sees go to `desk`. `patience` is in milliseconds.
    #[napi(constructor, catch_unwind)]
    pub fn new(
        externals: Vec<ClassInstance<'_, External>>,
        seats: Vec<Seat>,
        desk: &mut Desk,
        settings: String,
        audit: Option<Function<'_, String, ()>>,
        max_hops: u32,
        patience: Option<u32>,
    ) -> Result<Self> {
        let settings: ServerSettings<Milliseconds> = read(&settings)?;
        let mut externals = externals.iter().map(|external| external.0.clone());
        let first = externals
            .next()
            .ok_or_else(|| misuse("a front has at least one server"))?;
        let own = chain::Front::new(first).max_hops(max_hops.into());
        let mut own = externals
            .try_fold(own, chain::Front::join)
            .map_err(error::request)?;
        if let Some(patience) = patience {
            own = own.patience(Duration::from_millis(patience.into()));
        }
        if let Some(policy) = settings.policy().map_err(misuse)? {
            own = own.policy(match &audit {
                None => policy,
                Some(audit) => audited(policy, audit)?,
            });
        }
        let mut numbers = Vec::new();
        for seat in seats {
            own = match seat.prefix {
                Some(prefix) => own.with(Prefix::new(prefix).map_err(error::request)?),
                None => {
                    let (number, handoff) = desk.seat(HandoffInterests {
                        requests: seat.sees_requests,
                        notifications: seat.sees_notifications,
                    });
                    numbers.push(number);
                    own.with(handoff)
                }
            };
        }
        Ok(Self {
            own: Arc::new(own),
            seats: numbers,
        })
    }

    /// The numbers of the program's seats at the desk.
    #[napi(catch_unwind)]
    pub fn seats(&self) -> Vec<u32> {
        self.seats.clone()
    }
}
