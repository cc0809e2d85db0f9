//! What a handler may ask of the client while it serves a call.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::Context;
use crate::connection::RequestOptions;
use crate::error::RequestError;
use crate::handler::HandlerError;
use crate::mcp::{Elicitation, Elicited, Era, ErrorKind, Method, Root, Sampled, Sampling};
use crate::schema::Schema;

/// Questions to the client, in every revision.
///
/// All of these fail at once, before anything is sent, when the client did not declare what they
/// need (R-CAP-03). In the revisions with a handshake they are requests: they wait for the user as
/// long as [`Limits::max_request_timeout`](crate::limits::Limits) allows and are cancelled when
/// the call is. While one waits, the connection goes on: the client may call further tools, whose
/// handlers may ask in turn.
///
/// From 2026-07-28 on they end the call with what is asked, and the client repeats it with the
/// answers. **The handler then runs from its beginning again** and gets at once what it asked
/// before: what it does before it asks, it does again. Nothing is kept on the server meanwhile;
/// what the client keeps for it is signed ([`Builder::state_key`](super::Builder::state_key)).
/// Tools, resources and prompts may ask; completions may not (R-CMP-06).
impl Context {
    /// Has the client's model continue a conversation.
    ///
    /// ```
    /// use mcpbolt::mcp::Sampling;
    /// use mcpbolt::server::{Arguments, Context, HandlerError, Server, Tool};
    ///
    /// let server = Server::builder("summary", "1.0.0")
    ///     .tool(Tool::new("summarise"), |text: Arguments, context: Context| async move {
    ///         let question = format!("Summarise in a sentence: {}", text.0);
    ///         let said = context.sample(Sampling::user(question, 100)).await?;
    ///         Ok::<_, HandlerError>(said.to_text())
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    ///
    /// # Errors
    /// [`RequestError::Unsupported`] when the client has no model to offer; or its error, a
    /// timeout, the end of the connection.
    pub async fn sample(&self, sampling: Sampling) -> Result<Sampled, RequestError> {
        self.may_ask(|capabilities| sampling.check(self.revision(), capabilities))?;
        self.ask(Method::CreateMessage, Some(json(&sampling)?), parse)
            .await
    }

    /// Asks the user for something. What is filled into a form is held against it (R-ELI-06).
    ///
    /// # Errors
    /// [`RequestError::Unsupported`] when the client has no user to ask in that way; or its
    /// error, a timeout, the end of the connection.
    pub async fn elicit(&self, elicitation: Elicitation) -> Result<Elicited, RequestError> {
        self.may_ask(|capabilities| elicitation.check(self.revision(), capabilities))?;
        let form = match &elicitation {
            Elicitation::Form { schema, .. } => Some(Schema::new(&schema.to_string())),
            Elicitation::Url { .. } => None,
        };
        let form = form.transpose();
        let form = form.map_err(|_| RequestError::Misuse("the form's schema is not valid"))?;
        let params = elicitation.to_json(self.revision()).to_string();
        let read = |result: &str| {
            let elicited = Elicited::parse(result)?;
            if let (Elicited::Accepted(content), Some(form)) = (&elicited, &form) {
                let misfit =
                    |_| RequestError::BadAnswer("what was filled in does not fit the form");
                form.check(&json(content)?).map_err(misfit)?;
            }
            Ok(elicited)
        };
        self.ask(Method::Elicit, Some(params), read).await
    }

    /// Shows the user a form made from the fields of `T`, which must be plain; `None` when the
    /// user says no or goes away.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    pub async fn fill_in<T: DeserializeOwned + JsonSchema>(
        &self,
        message: &str,
    ) -> Result<Option<T>, RequestError> {
        let mut schema = schemars::generate::SchemaSettings::draft2020_12()
            .with(|settings| settings.inline_subschemas = true)
            .into_generator()
            .into_root_schema_for::<T>()
            .to_value();
        if let Some(members) = schema.as_object_mut() {
            members.retain(|name, _| matches!(&**name, "type" | "properties" | "required"));
        }
        let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
        fields
            .into_iter()
            .flatten()
            .for_each(|(_, field)| plain(field));
        match self.elicit(Elicitation::form(message, schema)).await? {
            Elicited::Accepted(content) => {
                let filled = serde_json::from_value(Value::Object(content));
                let misfit = RequestError::BadAnswer("what was filled in does not fit the form");
                filled.map(Some).map_err(|_| misfit)
            }
            Elicited::Declined | Elicited::Cancelled => Ok(None),
        }
    }

    /// The folders and files that the client wants servers to keep to.
    ///
    /// # Errors
    /// [`RequestError::Unsupported`] when the client shows none; or its error, a timeout, the end
    /// of the connection.
    pub async fn roots(&self) -> Result<Vec<Root>, RequestError> {
        #[derive(serde::Deserialize)]
        struct Roots {
            roots: Vec<Root>,
        }
        self.may_ask(|capabilities| {
            let declared = crate::json::reader::find(capabilities, "roots");
            declared.map(drop).ok_or(RequestError::Unsupported("roots"))
        })?;
        let roots: Roots = self.ask(Method::ListRoots, None, parse).await?;
        Ok(roots.roots)
    }

    /// Refuses the call unless the client declared the capability at `path`, for example
    /// `["elicitation", "url"]`: with the error that tells the client which one to declare
    /// (R-ERR-16).
    ///
    /// # Errors
    /// When the client did not.
    pub fn require(&self, path: &[&str]) -> Result<(), HandlerError> {
        let name = path.join(".");
        let declared = |capabilities: &str| {
            let found = crate::json::reader::find_path(capabilities, path);
            found.map(drop).ok_or(RequestError::Unsupported(""))
        };
        self.may_ask(declared).map_err(|_| {
            let leaf = Value::Object(serde_json::Map::new());
            let wrap = |inner, name: &&str| serde_json::json!({ *name: inner });
            let required = path.iter().rev().fold(leaf, wrap);
            let why = format!("this needs a client that declares {name}");
            HandlerError::protocol(ErrorKind::MissingClientCapability, why)
                .with_data(&serde_json::json!({ "requiredCapabilities": required }))
        })
    }

    /// This context, with a name for the next question that is asked through it: what clients of
    /// 2026-07-28 see it as. Questions of one call have different names; without one they are
    /// numbered.
    #[must_use]
    pub fn named(&self, question: &str) -> Self {
        let mut named = self.clone();
        named.question = Some(question.into());
        named
    }

    fn may_ask(
        &self,
        check: impl FnOnce(&str) -> Result<(), RequestError>,
    ) -> Result<(), RequestError> {
        match self.revision().era() {
            Era::Handshake => {
                let peer = self.connection().peer();
                check(peer.map_or("{}", |peer| &peer.capabilities))
            }
            Era::Stateless => check(self.rounds().map_or("{}", |rounds| rounds.capabilities())),
        }
    }

    /// One question and its answer.
    async fn ask<T>(
        &self,
        method: Method,
        params: Option<String>,
        read: impl FnOnce(&str) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        if let Some(task) = self.task().filter(|task| task.is_task())
            && self.revision().era() == Era::Stateless
        {
            let answer = task.ask(method, params).await.unwrap_or_default();
            return read(&answer);
        }
        if let Some(rounds) = self.rounds() {
            let name = self.question.as_deref();
            return Ok(rounds.ask(name, method, params, read).await);
        }
        let patience: Duration = self.connection().config().limits.max_request_timeout;
        let options = RequestOptions {
            timeout: Some(patience),
            within: Some(self.reply_to().key()),
            meta: self.task().and_then(|task| task.related()).map(Into::into),
            ..RequestOptions::default()
        };
        let _waits = self.task().and_then(|task| task.waits());
        let asked = self
            .connection()
            .request(method.name(), params.as_deref(), options)?;
        let answer = asked.await?;
        read(answer.as_ref().result().unwrap_or("{}"))
    }
}

/// A field as forms have it: not required is said elsewhere, and few formats have a name.
fn plain(field: &mut Value) {
    let Some(field) = field.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(types)) = field.get("type") {
        let own = types.iter().find(|name| *name != "null").cloned();
        field.insert("type".to_owned(), own.unwrap_or_default());
    }
    let formats = ["email", "uri", "date", "date-time"];
    let has_name = |format: &Value| format.as_str().is_some_and(|name| formats.contains(&name));
    if field.get("format").is_some_and(|format| !has_name(format)) {
        field.remove("format");
    }
}

fn json(value: &impl Serialize) -> Result<String, RequestError> {
    serde_json::to_string(value).map_err(|_| RequestError::Misuse("this cannot be JSON"))
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<T, RequestError> {
    serde_json::from_str(json).map_err(|_| RequestError::BadAnswer("a result of another shape"))
}
