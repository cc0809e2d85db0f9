//! The client's side of a connection, on the engine's thread.

use std::sync::{Arc, OnceLock};

use mcpbolt::client::{Client, ClientBuilder, ClientHost, Prepared};
use mcpbolt::connection::{Config, Handle, OpeningMode, Progress, ProgressFn};
use mcpbolt::error::ConnectionError;
use mcpbolt::io::{Workers, WorkersConfig, traced};
use mcpbolt::mcp::{
    Elicitation, Elicited, Era, Method, Profile, Revision, Revisions, Root, Sampled, Sampling,
    Side, TaskForm,
};
use mcpbolt::server::HandlerError;
use napi_derive::napi;
use serde_json::value::RawValue;

use crate::drain::quote;
use crate::error::{self, Result, error};
use crate::inbox::{Event, Farewell, Inbox};
use crate::link::Asker;
use crate::questions::{Questions, Topic};

/// Options of a client.
#[napi(object)]
pub struct ClientOptions {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How the connection opens: `probe`, `handshake`, `stateless` or `actions`.
    pub opening: Option<String>,
    /// The variant of the protocol to speak.
    pub profile: Option<String>,
    /// The only revision to speak; every one by default.
    pub revision: Option<String>,
    /// Whether to show each frame to JavaScript.
    pub trace: bool,
    /// Whether it has a model.
    pub sampling: bool,
    /// Whether the model may use the server's tools.
    pub sampling_tools: bool,
    /// Whether it has a user who fills in forms.
    pub forms: bool,
    /// Whether it has a user who visits pages.
    pub pages: bool,
    /// Its roots, as JSON.
    pub roots: Option<String>,
    /// Whether servers may turn its calls into tasks.
    pub tasks: bool,
    /// Whether results are validated against the protocol revision.
    pub check_results: bool,
    /// Extensions to declare: pairs of name and settings, as JSON.
    pub extensions: Option<String>,
}

/// A client that is ready to connect. Its events and questions reach JavaScript through the inbox.
pub struct Described {
    pub builder: ClientBuilder,
    pub asker: Asker,
}

impl ClientOptions {
    /// Describes the client to the engine. The [`Farewell`] that `farewell` returns is sent when the engine
    /// drops the connection.
    pub fn describe(
        &self,
        inbox: &Arc<Inbox>,
        farewell: impl FnOnce(&Arc<OnceLock<Client>>) -> Option<Farewell>,
    ) -> Result<Described> {
        let questions = Arc::new(Questions::new(inbox));
        let mut builder = Client::builder(&self.name, &self.version).opening(self.opening());
        if let Some(profile) = &self.profile {
            let profile: Profile = profile
                .parse()
                .map_err(|why| error("ERR_MCP_MISUSE", why))?;
            if profile != Profile::Official {
                builder = builder.profile(profile);
            }
        }
        if let Some(name) = &self.revision {
            let unknown = || error("ERR_MCP_MISUSE", format!("there is no revision {name}"));
            let revision = Revision::parse(name).ok_or_else(unknown)?;
            builder = builder.revisions(Revisions::only(revision));
            if self.opening.is_none() && revision.era() == Era::Handshake {
                builder = builder.opening(OpeningMode::Handshake);
            }
        }
        if self.trace {
            builder = builder.trace(inbox.trace());
        }
        if let Some(json) = &self.roots {
            builder = builder.roots(roots(json)?);
        }
        if self.tasks {
            builder = builder.tasks();
        }
        if self.check_results {
            builder = builder.check_results();
        }
        if let Some(json) = &self.extensions {
            let pairs: Vec<(String, Box<RawValue>)> =
                serde_json::from_str(json).map_err(|why| error("ERR_MCP_MISUSE", why))?;
            for (id, settings) in pairs {
                builder = builder.extension(&id, settings.get());
            }
        }
        let client = Arc::new(OnceLock::new());
        let builder = self.answer(builder, &questions);
        let farewell = farewell(&client);
        let builder = told(builder, inbox, client.clone(), farewell);
        let asker = Asker { client, questions };
        Ok(Described { builder, asker })
    }

    fn opening(&self) -> OpeningMode {
        match self.opening.as_deref() {
            Some("actions") => OpeningMode::Actions,
            named => named.and_then(OpeningMode::parse).unwrap_or_default(),
        }
    }

    fn answer(&self, mut builder: ClientBuilder, questions: &Arc<Questions>) -> ClientBuilder {
        if self.sampling {
            let questions = questions.clone();
            let handler = move |sampling: Sampling, _| sample(questions.clone(), sampling);
            builder = match self.sampling_tools {
                true => builder.on_sampling_with_tools(handler),
                false => builder.on_sampling(handler),
            };
        }
        if self.forms {
            let questions = questions.clone();
            builder = builder
                .on_form(move |form, asked| elicit(questions.clone(), form, asked.revision()));
        }
        if self.pages {
            let questions = questions.clone();
            builder = builder
                .on_page(move |page, asked| elicit(questions.clone(), page, asked.revision()));
        }
        builder
    }
}

/// Roots, from JSON.
pub fn roots(json: &str) -> Result<Vec<Root>> {
    serde_json::from_str(json).map_err(|why| error("ERR_MCP_MISUSE", why))
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
    farewell: Option<Farewell>,
) -> ClientBuilder {
    let (news, open, end) = (inbox.clone(), inbox.clone(), inbox.clone());
    builder
        .on_raw_notice(move |method, params| news.push(notice(method, params)))
        .on_opened(move |client| {
            // Set only here: a connection opens once.
            let _ = opened.set(client.clone());
            open.push(Event::Opened(peer_json(client.handle())));
        })
        .on_closed(move |client| {
            let _last = &farewell;
            let reason = client.handle().close_reason().cloned();
            end.push(Event::Closed(
                reason.unwrap_or(ConnectionError::ClosedLocally),
            ));
        })
}

fn notice(method: &str, params: Option<&str>) -> Event {
    let mut json = String::from("{\"method\":");
    quote(&mut json, method);
    if let Some(params) = params {
        json.push_str(",\"params\":");
        json.push_str(params);
    }
    json.push('}');
    match Method::parse(method) {
        None | Some(Method::LogMessage) => Event::Notification(json),
        Some(_) => Event::Change(json.into()),
    }
}

/// Maximum number of threads that handle requests of the server before, or without, JavaScript.
const THREADS: usize = 2;

impl Described {
    /// The configuration of its connection, and the client to create on it.
    pub fn prepare(self) -> Result<(Arc<Config>, Prepared, Asker)> {
        let (config, prepared) = self.builder.prepare().map_err(|why| error::request(&why))?;
        let config = traced(Arc::new(config)).map_err(|why| error::io(&why))?;
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

/// The description of the peer of a connection, and the negotiated revision, as JSON.
pub fn peer_json(handle: &Handle) -> String {
    let peer = handle.peer().cloned().unwrap_or_default();
    let revision = handle.revision().unwrap_or(Revision::V2026_07_28);
    let mut json = String::from("{\"revision\":");
    quote(&mut json, revision.name());
    // The method that serves as a ping.
    let ping = match Method::Ping.defined(revision, Side::Client) {
        true => Method::Ping,
        false => Method::Discover,
    };
    json.push_str(",\"ping\":");
    quote(&mut json, ping.name());
    for (key, method) in [("listens", Method::Listen), ("setsLevel", Method::SetLevel)] {
        let defined = method.defined(revision, Side::Client);
        json.push_str(&format!(",\"{key}\":{defined}"));
    }
    let tasks = match revision.rules().tasks {
        None => "null",
        Some(TaskForm::Core) => "\"core\"",
        Some(TaskForm::Extension) => "\"extension\"",
    };
    json.push_str(&format!(",\"tasks\":{tasks}"));
    implementation(&mut json, &peer.implementation, &peer.capabilities);
    if let Some(instructions) = &peer.instructions {
        json.push_str(",\"instructions\":");
        quote(&mut json, instructions);
    }
    json.push('}');
    json
}

/// A client's description of itself, the revision of its request and the number of its connection, as JSON.
pub fn introduction(
    revision: Revision,
    connection: Option<u64>,
    peer: &str,
    capabilities: &str,
) -> String {
    let mut json = String::from("{\"revision\":");
    quote(&mut json, revision.name());
    if let Some(number) = connection {
        json.push_str(&format!(",\"connection\":{number}"));
    }
    implementation(&mut json, peer, capabilities);
    json.push('}');
    json
}

fn implementation(json: &mut String, peer: &str, capabilities: &str) {
    for (key, value) in [("peer", peer), ("capabilities", capabilities)] {
        if !value.is_empty() {
            json.push_str(&format!(",\"{key}\":{value}"));
        }
    }
}

/// Passes progress on request `number` to JavaScript.
pub fn progress(inbox: Arc<Inbox>, number: u32) -> ProgressFn {
    Arc::new(move |progress: Progress<'_>| {
        let mut json = format!("{{\"progress\":{}", progress.progress);
        if let Some(total) = progress.total {
            json.push_str(&format!(",\"total\":{total}"));
        }
        if let Some(message) = progress.message {
            json.push_str(",\"message\":");
            quote(&mut json, message);
        }
        json.push('}');
        inbox.push(Event::Progress(number, json));
    })
}
