//! The setup of a client, as the Python package describes it, up to its connection.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpbolt::client::{Client, ClientBuilder, ClientHost, Prepared};
use mcpbolt::connection::{Config, Handle, OpeningMode};
use mcpbolt::error::RequestError;
use mcpbolt::io::{Workers, WorkersConfig, trace_to, traced};
use mcpbolt::limits::Limits;
use mcpbolt::mcp::{Profile, Revision, Revisions, Root};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::asked::{Asked, Offers, hand_on};
use crate::client::Link;
use crate::inbox::Inbox;
use crate::news::{Ending, News};
use crate::setup::wrong;

/// The futures and callbacks of a client.
pub struct Ears {
    pub opened: Py<PyAny>,
    pub ended: Py<PyAny>,
    pub on_notice: Py<PyAny>,
    pub on_asked: Py<PyAny>,
    pub on_given_up: Py<PyAny>,
    pub on_stderr: Option<Py<PyAny>>,
}

impl Ears {
    /// Shows them to the garbage collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Self {
            opened,
            ended,
            on_notice,
            on_asked,
            on_given_up,
            on_stderr,
        } = self;
        for ear in [opened, ended, on_notice, on_asked, on_given_up] {
            visit.call(ear)?;
        }
        visit.call(on_stderr)
    }
}

/// The Python `ClientSetup`.
#[derive(FromPyObject)]
pub struct Setup {
    name: String,
    version: String,
    opening: String,
    profile: String,
    revision: Option<String>,
    timeout: Option<f64>,
    trace: Option<PathBuf>,
    opened: Py<PyAny>,
    ended: Py<PyAny>,
    on_notice: Py<PyAny>,
    on_asked: Py<PyAny>,
    on_given_up: Py<PyAny>,
    on_stderr: Option<Py<PyAny>>,
    sampling: bool,
    sampling_tools: bool,
    forms: bool,
    pages: bool,
    roots: Option<Vec<(String, Option<String>)>>,
    tasks: bool,
    check_results: bool,
    extensions: Vec<(String, String)>,
}

/// A client that is set up but not prepared, and the Python package's part of it.
pub struct Described {
    pub builder: ClientBuilder,
    pub inbox: Arc<Inbox<News>>,
    pub asked: Arc<Asked>,
    pub ears: Ears,
}

/// A client that is prepared for its connection.
pub struct Begun {
    pub config: Arc<Config>,
    prepared: Prepared,
    pub inbox: Arc<Inbox<News>>,
    asked: Arc<Asked>,
    pub ears: Ears,
}

impl Setup {
    pub fn describe(self) -> PyResult<Described> {
        let inbox = Arc::new(Inbox::new()?);
        let asked = Arc::new(Asked::new(inbox.clone()));
        let offers = Offers {
            sampling: self.sampling,
            sampling_tools: self.sampling_tools,
            forms: self.forms,
            pages: self.pages,
        };
        let ending = Ending(inbox.clone());
        let builder =
            Client::builder(&self.name, &self.version).on_raw_notice(move |method, params| {
                let params = params.unwrap_or("{}").to_owned();
                ending.0.push(News::Notice(method.to_owned(), params));
            });
        let mut builder = hand_on(builder, &offers, &asked);
        builder = builder.opening(match &*self.opening {
            "actions" => OpeningMode::Actions,
            named => OpeningMode::parse(named).unwrap_or_default(),
        });
        let profile: Profile = self.profile.parse().map_err(wrong)?;
        if profile != Profile::Official {
            builder = builder.profile(profile);
        }
        if let Some(name) = &self.revision {
            let revision = Revision::parse(name)
                .ok_or_else(|| PyValueError::new_err(format!("there is no revision {name:?}")))?;
            builder = builder.revisions(Revisions::only(revision));
        }
        if let Some(roots) = self.roots {
            builder = builder.roots(roots.into_iter().map(root));
        }
        if self.tasks {
            builder = builder.tasks();
        }
        if self.check_results {
            builder = builder.check_results();
        }
        for (id, settings) in &self.extensions {
            builder = builder.extension(id, settings);
        }
        if let Some(timeout) = self.timeout {
            builder = builder.limits(Limits {
                request_timeout: seconds(timeout)?,
                ..Limits::default()
            });
        }
        if let Some(path) = self.trace.as_deref() {
            builder = builder.trace(trace_to(path)?);
        }
        let ears = Ears {
            opened: self.opened,
            ended: self.ended,
            on_notice: self.on_notice,
            on_asked: self.on_asked,
            on_given_up: self.on_given_up,
            on_stderr: self.on_stderr,
        };
        Ok(Described {
            builder,
            inbox,
            asked,
            ears,
        })
    }

    pub fn begin(self) -> PyResult<Begun> {
        let Described {
            builder,
            inbox,
            asked,
            ears,
        } = self.describe()?;
        let (config, prepared) = builder.prepare().map_err(value_error)?;
        Ok(Begun {
            config: traced(Arc::new(config))?,
            prepared,
            inbox,
            asked,
            ears,
        })
    }
}

impl Begun {
    /// Makes the link for a connection, and the host for it.
    pub fn link(self, handle: Handle) -> (Link, ClientHost) {
        let workers = Arc::new(Workers::new(WorkersConfig::default()));
        let (client, host) = self.prepared.connect(handle, workers);
        let link = Link::new(client, self.inbox, self.asked, self.ears);
        (link, host)
    }
}

pub fn root((uri, name): (String, Option<String>)) -> Root {
    match name {
        Some(name) => Root::new(uri).name(name),
        None => Root::new(uri),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as it is mapped")]
pub fn value_error(error: RequestError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err("a timeout is a positive number of seconds"))
}
