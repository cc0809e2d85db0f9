//! The setup of a client, as the Python package describes it, up to its connection.

use std::sync::Arc;

use mcpbolt::client::{ClientBuilder, ClientHost, Prepared};
use mcpbolt::connection::{Config, Handle};
use mcpbolt::error::RequestError;
use mcpbolt::io::{Workers, WorkersConfig, traced};
use mcpbolt::settings::{ClientSettings, Seconds};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::asked::{Asked, hand_on};
use crate::client::Link;
use crate::inbox::Inbox;
use crate::news::{Ending, News};
use crate::settings::{read, wrong};

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
    /// The [`ClientSettings`], as JSON.
    json: String,
    opened: Py<PyAny>,
    ended: Py<PyAny>,
    on_notice: Py<PyAny>,
    on_asked: Py<PyAny>,
    on_given_up: Py<PyAny>,
    on_stderr: Option<Py<PyAny>>,
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
        let settings: ClientSettings<Seconds> = read(&self.json)?;
        let ending = Ending(inbox.clone());
        let builder = settings.builder()?.on_raw_notice(move |method, params| {
            let params = params.unwrap_or("{}").to_owned();
            ending.0.push(News::Notice(method.to_owned(), params));
        });
        let builder = hand_on(builder, &settings, &asked);
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

#[expect(clippy::needless_pass_by_value, reason = "as it is mapped")]
pub fn value_error(error: RequestError) -> PyErr {
    wrong(error)
}
