//! The client's side of a connection, as the engine's thread sees it.

use std::sync::{Arc, OnceLock};

use mcpbolt::client::{Client, ClientBuilder, ClientHost, Prepared};
use mcpbolt::connection::{Config, Handle, Opening, Progress, ProgressFn};
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

/// What a client brings to a connection.
#[napi(object)]
pub struct ClientOptions {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it opens: `probe`, `handshake`, `stateless` or `actions`.
    pub opening: Option<String>,
    /// Whose reading of the protocol is spoken.
    pub profile: Option<String>,
    /// The one revision that it speaks; every one by default.
    pub revision: Option<String>,
    /// Show each frame to JavaScript.
    pub trace: bool,
    /// It has a model.
    pub sampling: bool,
    /// The model may be given the server's tools.
    pub sampling_tools: bool,
    /// It has a user who fills in forms.
    pub forms: bool,
    /// It has a user who visits pages.
    pub pages: bool,
    /// Its roots, as JSON.
    pub roots: Option<String>,
    /// Servers may make tasks of its calls.
    pub tasks: bool,
    /// Results are held against what the revisions say of them.
    pub check_results: bool,
    /// Extensions that it declares: names and settings in pairs, as JSON.
    pub extensions: Option<String>,
}

/// A client that is described: what JavaScript is told and asked goes through the inbox.
pub struct Described {
    pub builder: ClientBuilder,
    pub asker: Asker,
}

impl ClientOptions {
    /// What `farewell` gives is said when the engine lets go of the connection.
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
                builder = builder.opening(Opening::Handshake);
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

    fn opening(&self) -> Opening {
        match self.opening.as_deref() {
            Some("actions") => Opening::Actions,
            named => named.and_then(Opening::parse).unwrap_or_default(),
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

/// Has JavaScript told of the connection, and of what the server tells.
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
            // It opens once.
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

/// Threads that may do what the server asks for until JavaScript is asked, or without it.
const THREADS: usize = 2;

impl Described {
    /// Its connection's configuration, and what becomes a client on it.
    pub fn prepare(self) -> Result<(Arc<Config>, Prepared, Asker)> {
        let (config, prepared) = self.builder.prepare().map_err(|why| error::request(&why))?;
        let config = traced(Arc::new(config)).map_err(|why| error::io(&why))?;
        Ok((config, prepared, self.asker))
    }
}

/// The host of a client on the connection of `handle`.
pub fn connect(prepared: Prepared, handle: Handle) -> ClientHost {
    let workers = Arc::new(Workers::new(WorkersConfig {
        max_threads: THREADS,
        ..WorkersConfig::default()
    }));
    prepared.connect(handle, workers).1
}

/// What the peer of a connection said of itself, and the revision in force.
pub fn peer_json(handle: &Handle) -> String {
    let peer = handle.peer().cloned().unwrap_or_default();
    let revision = handle.revision().unwrap_or(Revision::V2026_07_28);
    let mut json = String::from("{\"revision\":");
    quote(&mut json, revision.name());
    // What asks for a sign of life.
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

/// What a client said of itself, the revision of what it asks, and the number of its connection.
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

/// Passes progress on request `number` on to JavaScript.
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
