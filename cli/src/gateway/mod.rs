//! `mcpbolt gateway`: several servers as one, as a file lists them.

mod config;
mod document;
mod pins;
mod reading;
mod reload;
mod rules;
mod status;
mod status_page;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail, ensure};
use mcpbolt::chain::{External, Front, Prefix};
use mcpbolt::connection::Observer;
use mcpbolt::io::{Address, Auth, ChildCommand, serve_with, wait_for_clients};
use mcpbolt::policy::Policy;
use mcpbolt::store::SealedStore;
use tracing::{info, warn};

use crate::carrier::{self, Carrier};
use crate::network::Network;
use crate::reference::Resolved;
use crate::role::{self, Role};
use crate::session::{FAREWELL, connecting};
use crate::shown;
use crate::watched::Watched;

use self::config::{Config, Place, Target, Upstream};
use self::reload::{Current, Files};
use self::rules::Rules;
use self::status::Status;

/// Where to serve unless the file or the command says so.
const ADDRESS: &str = "http://127.0.0.1:8000/mcp";

/// Which servers, and where to serve them.
#[derive(clap::Args)]
pub struct Gateway {
    /// Where to serve, in place of the file's `listen`: stdio:, http://127.0.0.1:8000/mcp, https://…, ws://…,
    /// tcp:HOST:PORT or unix:/PATH
    address: Option<Address>,
    /// The file of settings: TOML, or JSON with the mcpServers of an editor
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Check the file, show what it says, and end: with status 1 if anything is wrong
    #[arg(long)]
    check: bool,
    /// Ask the servers for their tools, write what these are into the file that `pins` names, and end
    #[arg(long, conflicts_with = "check")]
    pin: bool,
    #[command(flatten)]
    network: Network,
    #[command(flatten)]
    watched: Watched,
    #[command(flatten)]
    carrier: Carrier,
}

/// Serves until Ctrl-C or SIGTERM; on stdio:, until the end of stdin.
pub fn gateway(args: Gateway) -> Result<u8> {
    args.watched.check(args.carrier.workers)?;
    let files = Files::default().and(args.config.clone());
    let mut config = load(&args)?;
    if args.pin {
        return config.pin(&args.network);
    }
    let shown = config.shown();
    let status = Arc::new(Status::default());
    let started = Started::with(&config);
    let files = config.pins.iter().cloned().fold(files, Files::and);
    let address = match args.address.clone().or(started.listen.clone()) {
        Some(address) => address,
        None => ADDRESS.parse()?,
    };
    ensure!(
        started.status.0.is_none() || args.carrier.workers.is_none(),
        "`status` shows the state of one process; leave it out with --workers, and use --health ADDRESS"
    );
    if args.check {
        args.carrier.store.check(&address)?;
        drop(config.front(&args.network, &status, None, &Enforced::default())?);
        shown::print(&shown::lines(&shown))?;
        return Ok(0);
    }
    let (options, state) = match role::take(&args.carrier, &address)? {
        Role::Serve(options, state) => (*options, state),
        Role::Done(code) => return Ok(code),
    };
    let watch = args.watched.begin(started.status.0.is_some())?;
    let observer = watch.observer();
    let sessions = options.http.shared_sessions.as_ref();
    let store = sessions.map(|it| SealedStore::new(it.store.clone(), it.keys.clone()));
    let mut enforced = Enforced::of(&mut config, store.as_ref(), None)?;
    let front = config.front(&args.network, &status, observer.as_ref(), &enforced)?;
    if let (Some(at), is_anonymous) = &started.status {
        let counts = watch.counts().cloned().unwrap_or_default();
        let health = state.clone();
        let health = move || health.health();
        let at = status_page::serve(status.clone(), counts, at, *is_anonymous, health)?;
        info!(%at, "status");
    }
    let mut current = None;
    let hosting = |spawner| current.insert(Current::new(front, spawner)).clone() as _;
    let serving = serve_with(hosting, &address, options)?;
    args.watched.show(&watch, &serving)?;
    if let Some(current) = &current {
        reload::watch(files, Arc::downgrade(current), move |files| {
            *files = Files::default().and(args.config.clone());
            let mut config = load(&args)?;
            *files = config
                .pins
                .iter()
                .cloned()
                .fold(std::mem::take(files), Files::and);
            let next = Enforced::of(&mut config, store.as_ref(), Some(&enforced))?;
            started.compare(&Started::with(&config));
            let front = config.front(&args.network, &status, observer.as_ref(), &next)?;
            enforced = next;
            Ok(front)
        });
    }
    let done = carrier::run(&serving, &address, &state);
    drop((serving, current));
    wait_for_clients(FAREWELL);
    done
}

/// The settings that are read at the start alone.
struct Started {
    listen: Option<Address>,
    /// Where it is shown, and whether other machines may read it.
    status: (Option<Address>, bool),
}

impl Started {
    fn with(config: &Config) -> Self {
        let address = |place: &Option<Place>| place.as_ref().map(|place| place.address.clone());
        Self {
            listen: address(&config.listen),
            status: (address(&config.status), config.status_anonymous),
        }
    }

    /// Tells which of these settings have changed since, and so are not in effect.
    fn compare(&self, now: &Self) {
        for (key, is_same) in [
            ("listen", self.listen == now.listen),
            ("status", self.status == now.status),
        ] {
            if !is_same {
                warn!(
                    key,
                    "has changed, which is not in effect: it is read at the start; restart the gateway"
                );
            }
        }
    }
}

/// The policy that is in force.
#[derive(Default)]
struct Enforced {
    policy: Option<Arc<Policy>>,
    /// Its members, JSON. Secret.
    members: Option<String>,
}

impl Enforced {
    /// The policy of a file, whose clients are counted on the store if there is one; after `earlier`, if the gateway serves already. One that
    /// is the same stays.
    ///
    /// # Errors
    /// If only a new start has it used: servers are not to be used by the new settings without it.
    fn of(
        config: &mut Config,
        store: Option<&SealedStore>,
        earlier: Option<&Self>,
    ) -> Result<Self> {
        let (policy, members) = (config.policy.take(), config.policy_members.take());
        let unchanged = earlier.filter(|earlier| earlier.members == members);
        if let Some(Self { policy, .. }) = unchanged {
            let policy = policy.clone();
            return Ok(Self { policy, members });
        }
        let is_there = policy.is_some();
        let mut policy = match (policy.unwrap_or_default(), store) {
            (policy, Some(store)) => policy.share(Arc::new(store.clone())),
            (policy, None) => policy,
        };
        if let Some(earlier) = earlier {
            let none = Policy::new();
            let succeeding = policy.succeeding(earlier.policy.as_deref().unwrap_or(&none));
            let told = |why| anyhow!("policy has changed: {why}; restart the gateway");
            policy = succeeding.map_err(told)?;
        }
        let policy = is_there.then(|| Arc::new(policy));
        Ok(Self { policy, members })
    }
}

fn load(args: &Gateway) -> Result<Config> {
    let read = config::read(&args.config);
    for warning in &read.warnings {
        eprintln!("warning: {}", shown::line(warning));
    }
    match read.config {
        Ok(config) => Ok(config),
        Err(problems) => bail!("{}", problems.join("\n")),
    }
}

impl Config {
    /// What `--check` shows. References stand for their values, which may be secret.
    fn shown(&self) -> String {
        let mut text = String::new();
        if let Some(listen) = &self.listen {
            let _ = writeln!(text, "listen {}", listen.written);
        }
        for Upstream {
            name,
            prefix,
            target,
            ..
        } in &self.servers
        {
            let names = match prefix.as_str() {
                "" => "*".to_owned(),
                prefix => format!("{prefix}_*"),
            };
            let at = match target {
                Target::Command { words, .. } => {
                    let words: Vec<_> = words.iter().map(ToString::to_string).collect();
                    words.join(" ")
                }
                Target::At { address, .. } => address.written.to_string(),
            };
            let _ = writeln!(text, "{name}: {names} at {at}");
        }
        text
    }

    /// Writes the file of pins.
    fn pin(self, network: &Network) -> Result<u8> {
        let file = self
            .pins
            .context("the file has no pins = \"FILE\" to write them into")?;
        let mut all = pins::File::new();
        for mut server in self.servers {
            server.prefix.clear();
            let (name, (external, _)) = (server.name.clone(), server.external(network)?);
            let pins = pins::take(external)?;
            shown::print(&shown::lines(&format!("{name}: {} tools\n", pins.len())))?;
            all.insert(name, pins);
        }
        pins::write(&file, &all)?;
        wait_for_clients(FAREWELL);
        Ok(0)
    }

    /// The servers as one, by the policy that is in force.
    fn front(
        self,
        network: &Network,
        status: &Status,
        observer: Option<&Arc<dyn Observer>>,
        enforced: &Enforced,
    ) -> Result<Front> {
        let mut pins = self.pins.as_deref().map(pins::read).transpose()?;
        let (mut front, mut all): (Option<Front>, _) = (None, Vec::new());
        for server in self.servers {
            let (name, (external, rules)) = (server.name.clone(), server.external(network)?);
            let pins = pins.as_mut().map(|pins| {
                let own = pins.remove(&name).unwrap_or_else(|| {
                    warn!(
                        server = name,
                        "has no pins, so none of its tools can be used; write them with --pin"
                    );
                    BTreeMap::new()
                });
                rules::pinned(&name, own)
            });
            let seen = status.of(&name);
            let (external, breaker) = (external.counting(seen.health()), rules.breaker());
            let external = rules.around(external, self.audits, pins, &seen);
            all.push((seen, breaker));
            front = Some(match front {
                None => Front::new(external),
                Some(front) => front.join(external)?,
            });
        }
        let mut front = front.context("no server")?;
        if let Some(observer) = observer {
            front = front.observer(observer.clone());
        }
        status.show(all);
        Ok(match &enforced.policy {
            Some(policy) => front.policy(policy.clone()),
            None => front,
        })
    }
}

impl Upstream {
    /// The server as the end of a chain. In total, a request may take ten times as long as an answer or a report of
    /// progress.
    fn external(self, network: &Network) -> Result<(External, Rules)> {
        let mut external = match self.target {
            Target::Command { words, env, cwd } => {
                let command = move || {
                    let mut words = words.iter().map(Resolved::value);
                    let program = words.next().unwrap_or_default();
                    let command = ChildCommand::new(program).args(words).cwd(&cwd);
                    let variable = |command: ChildCommand, (name, value): &(String, Resolved)| {
                        command.env(name, value.value())
                    };
                    env.iter().fold(command, variable)
                };
                External::command(self.name, command)
            }
            Target::At { address, headers } => {
                let header = |(name, value): (String, Resolved)| (name, value.value().to_owned());
                let headers = headers.into_iter().map(header).collect();
                let options = connecting(network, &address.address, Auth::None, headers)?;
                External::at(self.name, address.address, options)
            }
        };
        if !self.prefix.is_empty() {
            let why = format!("the prefix {:?}", self.prefix);
            external = external.prefix(Prefix::new(self.prefix).context(why)?);
        }
        if let Some(revisions) = self.revisions {
            external = external.revisions(revisions);
        }
        if let Some(isolation) = self.isolation {
            external = external.isolation(isolation);
        }
        if let Some(connections) = self.max_connections {
            external = external.max_connections(connections);
        }
        if let Some(time) = self.idle_time {
            external = external.idle_time(Some(time).filter(|time| !time.is_zero()));
        }
        if let Some(timeout) = self.timeout {
            external = external.timeouts(timeout, timeout.saturating_mul(10));
        }
        Ok((external, self.rules))
    }
}
