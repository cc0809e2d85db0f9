//! The setup of a client, as the Python package describes it, up to its connection.

use std::sync::Arc;

use mcpbolt::client::{ClientBuilder, ClientHost, Prepared};
use mcpbolt::connection::{Config, Handle};
use mcpbolt::io::{Workers, WorkersConfig, traced};
use mcpbolt::settings::{ClientSettings, Seconds};
use pyo3::prelude::*;

use crate::asked::{Asked, hand_on};
use crate::callbacks::Callbacks;
use crate::client::Link;
use crate::client_events::{ClientEvent, Ending};
use crate::inbox::Inbox;
use crate::settings::{read, wrong};
use crate::telemetry::Telemetry;

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
    telemetry: Option<Py<Telemetry>>,
}

/// A client that is set up but not prepared, and the Python package's part of it.
pub struct Described {
    pub builder: ClientBuilder,
    pub inbox: Arc<Inbox<ClientEvent>>,
    pub asked: Arc<Asked>,
    pub callbacks: Callbacks,
}

/// A client that is prepared for its connection.
pub struct Begun {
    pub config: Arc<Config>,
    prepared: Prepared,
    pub inbox: Arc<Inbox<ClientEvent>>,
    asked: Arc<Asked>,
    pub callbacks: Callbacks,
}

impl Setup {
    pub fn describe(self) -> PyResult<Described> {
        let inbox = Arc::new(Inbox::new()?);
        let asked = Arc::new(Asked::new(inbox.clone()));
        let settings: ClientSettings<Seconds> = read(&self.json)?;
        let ending = Ending(inbox.clone());
        let mut builder = settings.builder()?;
        if let Some(telemetry) = &self.telemetry {
            builder = builder.observer(Arc::new(telemetry.get().observer.clone()));
        }
        let builder = builder.on_raw_notice(move |method, params| {
            let params = params.unwrap_or("{}").to_owned();
            ending
                .0
                .push(ClientEvent::Notice(method.to_owned(), params));
        });
        let builder = hand_on(builder, &settings, &asked);
        let callbacks = Callbacks {
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
            callbacks,
        })
    }

    pub fn begin(self) -> PyResult<Begun> {
        let Described {
            builder,
            inbox,
            asked,
            callbacks,
        } = self.describe()?;
        let (config, prepared) = builder.prepare().map_err(wrong)?;
        Ok(Begun {
            config: traced(Arc::new(config))?,
            prepared,
            inbox,
            asked,
            callbacks,
        })
    }
}

impl Begun {
    /// Makes the link for a connection, and the host for it.
    pub fn link(self, handle: Handle) -> (Link, ClientHost) {
        let workers = Arc::new(Workers::new(WorkersConfig::default()));
        let (client, host) = self.prepared.connect(handle, workers);
        let link = Link::new(client, self.inbox, self.asked, self.callbacks);
        (link, host)
    }
}
