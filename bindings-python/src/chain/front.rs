//! The parts of a chain, as the Python package describes them.

use std::sync::Arc;

use mcpbolt::chain::{self, HandoffInterests};
use mcpbolt::io::{Address, ChildCommand};
use mcpbolt::settings::{self, ConnectSettings, ExternalSettings, Seconds, ServerSettings};
use pyo3::prelude::*;

use super::handoffs::Handoffs;
use super::rules::{Prefix, Rule};
use crate::audit;
use crate::hosted::Hosted;
use crate::login::Login;
use crate::serving::Serving;
use crate::settings::{read, seconds, unusable, wrong};
use crate::telemetry::Telemetry;

/// The server at the end of a chain.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct External(chain::External);

/// Checks that servers with these names and prefixes can be joined to one front.
#[pyfunction]
pub fn check_joined(servers: Vec<(String, Option<String>)>) -> PyResult<()> {
    settings::check_joined(servers).map_err(wrong)
}

/// A part of a chain that sees its messages.
#[derive(FromPyObject)]
pub enum Middleware<'py> {
    /// The engine's own.
    Prefix(Bound<'py, Prefix>),
    /// The engine's own.
    Rule(Bound<'py, Rule>),
    /// The program's: whether it sees requests, and notifications.
    Program(bool, bool),
}

impl External {
    fn with(external: chain::External, settings: &str) -> PyResult<Self> {
        let settings = read::<ExternalSettings<Seconds>>(settings)?;
        Ok(Self(settings.apply(external)))
    }
}

#[pymethods]
impl External {
    /// A server that is started as a child process.
    #[staticmethod]
    fn command(
        name: Option<String>,
        command: Vec<String>,
        cwd: Option<String>,
        env: Vec<(String, String)>,
        inherit: Vec<String>,
        settings: &str,
    ) -> PyResult<Self> {
        let (program, words) = command
            .split_first()
            .ok_or_else(|| wrong("the command is empty"))?;
        let (program, words) = (program.clone(), words.to_vec());
        let name = name.unwrap_or_else(|| Address::Stdio(command).public_name());
        let made = move || {
            let mut child = ChildCommand::new(&program).args(&words);
            if let Some(directory) = &cwd {
                child = child.cwd(directory);
            }
            child = inherit.iter().fold(child, ChildCommand::inherit_env);
            env.iter()
                .fold(child, |child, (name, value)| child.env(name, value))
        };
        Self::with(chain::External::command(name, made), settings)
    }

    /// A server at an address. `options` is JSON; `login` is for servers on HTTP.
    #[staticmethod]
    fn at(
        name: Option<String>,
        address: &str,
        options: &str,
        login: Option<&Login>,
        settings: &str,
    ) -> PyResult<Self> {
        let address: Address = address.parse().map_err(wrong)?;
        let mut options = read::<ConnectSettings<Seconds>>(options)?.connect()?;
        options.http.authorization = login.map(Login::authorization);
        let name = name.unwrap_or_else(|| address.public_name());
        Self::with(chain::External::at(name, address, options), settings)
    }

    /// A server of this process, which is running. `is_own` says that the front stands for it.
    #[staticmethod]
    fn server(name: String, serving: &Serving, settings: &str, is_own: bool) -> PyResult<Self> {
        let hosting = Arc::new(Hosted(serving.hub()));
        let external = chain::External::hosted(name, hosting);
        let external = match is_own {
            true => external.as_own(),
            false => external,
        };
        Self::with(external, settings)
    }

    /// Another chain of this process.
    #[staticmethod]
    fn chain(name: String, front: &Front, settings: &str) -> PyResult<Self> {
        Self::with(chain::External::chain(name, &front.own), settings)
    }

    /// The same with middleware for it alone.
    fn ruled(&self, rules: Vec<Bound<'_, Rule>>) -> Self {
        let rules = rules.iter().map(|rule| rule.get().own.clone());
        Self(rules.fold(self.0.clone(), chain::External::with))
    }

    /// The name, which stands in errors.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }
}

/// The side of a chain that clients talk to.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Front {
    pub own: chain::Front,
    numbers: Vec<usize>,
}

#[pymethods]
impl Front {
    /// `externals` are the servers that are joined, at least one. The messages that the program sees go to `handoffs`. `settings` is
    /// JSON, of which the policy is used; or the policy is that of `server`, which is running, and in whose name the front speaks.
    /// `telemetry` is told of requests and sessions.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the parts of a front")]
    fn new(
        externals: Vec<Bound<'_, External>>,
        middleware: Vec<Middleware<'_>>,
        handoffs: &Handoffs,
        settings: &str,
        audit: Option<Py<PyAny>>,
        failed: Py<PyAny>,
        max_hops: u64,
        patience: Option<f64>,
        server: Option<&Serving>,
        telemetry: Option<&Telemetry>,
    ) -> PyResult<Self> {
        let mut externals = externals.iter().map(|external| external.get().0.clone());
        let first = externals
            .next()
            .ok_or_else(|| wrong("a front has at least one server"))?;
        let own = chain::Front::new(first).max_hops(max_hops);
        let mut own = externals.try_fold(own, chain::Front::join).map_err(wrong)?;
        if let Some(patience) = patience {
            own = own.patience(seconds(patience)?);
        }
        if let Some(server) = server {
            let served = &server.hub().served;
            own = own.introducing(&served.config);
            if let Some(policy) = &served.policy {
                own = own.policy(policy.clone());
            }
        } else if let Some(policy) = read::<ServerSettings<Seconds>>(settings)?
            .policy()
            .map_err(unusable)?
        {
            own = own.policy(match audit {
                None => policy,
                Some(report) => audit::reported(policy, report, failed)?,
            });
        }
        if let Some(telemetry) = telemetry {
            let telemetry = telemetry.observer.clone();
            own = own.observer(Arc::new(telemetry.clone())).with(telemetry);
        }
        let mut numbers = Vec::new();
        for one in middleware {
            own = match one {
                Middleware::Prefix(prefix) => own.with(prefix.get().0.clone()),
                Middleware::Rule(rule) => own.with(rule.get().own.clone()),
                Middleware::Program(requests, notifications) => {
                    let interests = HandoffInterests {
                        requests,
                        notifications,
                    };
                    let (number, handoff) = handoffs.add(interests);
                    numbers.push(number);
                    own.with(handoff)
                }
            };
        }
        Ok(Self { own, numbers })
    }

    /// The numbers of the program's middleware.
    #[getter]
    fn numbers(&self) -> Vec<usize> {
        self.numbers.clone()
    }
}
