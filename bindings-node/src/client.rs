//! The client's side of a connection, on the engine's thread.

use std::sync::{Arc, OnceLock};

use mcpbolt::client::{Client, ClientBuilder, ClientHost, Prepared};
use mcpbolt::connection::{Config, Handle};
use mcpbolt::error::ConnectionError;
use mcpbolt::io::{Workers, WorkersConfig, traced};
use mcpbolt::mcp::{Method, Revision};
use mcpbolt::model::{Elicitation, Elicited, Sampled, Sampling};
use mcpbolt::server::HandlerError;
use mcpbolt::settings::{ClientSettings, Milliseconds};

use crate::describe;
use crate::error::{self, Failure, Result};
use crate::inbox::{EndReport, Event, Inbox};
use crate::json::{self, read};
use crate::kinds::Inbound;
use crate::link::Asker;
use crate::questions::{Questions, Topic};
use crate::telemetry::Telemetry;

/// The settings of a client; members without a handler in the core name those that JavaScript has.
pub type Settings = ClientSettings<Milliseconds>;

/// A client that is ready to connect. Its events and questions reach JavaScript through the inbox.
pub struct Described {
    pub builder: ClientBuilder,
    pub asker: Asker,
}

impl Described {
    /// Describes a client to the engine. The [`EndReport`] that `report` returns is sent when the engine drops the
    /// connection. With `trace`, each frame is shown to JavaScript; `telemetry` is told of requests and of the session.
    pub fn new(
        settings: &str,
        trace: bool,
        telemetry: Option<&Telemetry>,
        inbox: &Arc<Inbox>,
        report: impl FnOnce(&Arc<OnceLock<Client>>) -> Option<EndReport>,
    ) -> Result<Self> {
        let settings: Settings = read(settings)?;
        let mut builder = settings.builder().map_err(error::io)?;
        if trace {
            builder = builder.trace(inbox.trace());
        }
        if let Some(telemetry) = telemetry {
            builder = builder.observer(Arc::new(telemetry.observer.clone()));
        }
        let questions = Arc::new(Questions::new(inbox));
        let client = Arc::new(OnceLock::new());
        builder = answer(builder, &settings, &questions);
        builder = told(builder, inbox, client.clone(), report(&client));
        let asker = Asker { client, questions };
        Ok(Self { builder, asker })
    }
}

/// Answers the questions that JavaScript has handlers for.
fn answer(
    mut builder: ClientBuilder,
    settings: &Settings,
    questions: &Arc<Questions>,
) -> ClientBuilder {
    if settings.sampling {
        let questions = questions.clone();
        let handler = move |sampling: Sampling, _| sample(questions.clone(), sampling);
        builder = match settings.sampling_tools {
            true => builder.on_sampling_with_tools(handler),
            false => builder.on_sampling(handler),
        };
    }
    if settings.forms {
        let questions = questions.clone();
        builder =
            builder.on_form(move |form, asked| elicit(questions.clone(), form, asked.revision()));
    }
    if settings.pages {
        let questions = questions.clone();
        builder =
            builder.on_page(move |page, asked| elicit(questions.clone(), page, asked.revision()));
    }
    builder
}

async fn sample(questions: Arc<Questions>, sampling: Sampling) -> Answered<Sampled> {
    let json = serde_json::to_string(&sampling)?;
    let answer = questions.ask(Topic::Sampling, json).await?;
    serde_json::from_str(&answer).map_err(|_| HandlerError::new("the handler gave no message"))
}

async fn elicit(
    questions: Arc<Questions>,
    elicitation: Elicitation,
    revision: Revision,
) -> Answered<Elicited> {
    let topic = match elicitation {
        Elicitation::Form { .. } => Topic::Form,
        _ => Topic::Page,
    };
    let params = elicitation.to_json(revision).to_string();
    let answer = questions.ask(topic, params).await?;
    Elicited::parse(&answer).map_err(|_| HandlerError::new("the handler gave no action"))
}

type Answered<T> = std::result::Result<T, HandlerError>;

/// Passes the events of the connection and the server's notifications to JavaScript.
fn told(
    builder: ClientBuilder,
    inbox: &Arc<Inbox>,
    opened: Arc<OnceLock<Client>>,
    report: Option<EndReport>,
) -> ClientBuilder {
    let (news, open, end) = (inbox.clone(), inbox.clone(), inbox.clone());
    builder
        .on_raw_notice(move |method, params| news.push(notice(method, params)))
        .on_opened(move |client| {
            // Set only here: a connection opens once.
            let _ = opened.set(client.clone());
            open.push(Event::text(
                Inbound::Opened,
                describe::opened(client.handle()),
            ));
        })
        .on_closed(move |client| {
            let _last = &report;
            let reason = client.handle().close_reason();
            let reason = reason.unwrap_or(&ConnectionError::ClosedLocally);
            let failure = json::text(&Failure::of_connection(reason));
            end.push(Event::text(Inbound::Closed, failure));
        })
}

fn notice(method: &str, params: Option<&str>) -> Event {
    let json = describe::notification(method, params);
    match Method::parse(method) {
        None | Some(Method::LogMessage) => Event::text(Inbound::Notification, json),
        Some(_) => Event::Change(json.into()),
    }
}

/// Maximum number of threads that handle requests of the server before, or without, JavaScript.
const THREADS: usize = 2;

impl Described {
    /// The configuration of its connection, and the client to create on it.
    pub fn prepare(self) -> Result<(Arc<Config>, Prepared, Asker)> {
        let (config, prepared) = self.builder.prepare().map_err(error::request)?;
        let config = traced(Arc::new(config)).map_err(error::io)?;
        Ok((config, prepared, self.asker))
    }
}

/// Creates the host of a client on the connection of `handle`.
pub fn connect(prepared: Prepared, handle: Handle) -> ClientHost {
    let workers = Arc::new(Workers::new(WorkersConfig {
        max_threads: THREADS,
        ..WorkersConfig::default()
    }));
    prepared.connect(handle, workers).1
}
