//! Questions that a handler can ask the client during a call.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::Context;
use crate::connection::RequestOptions;
use crate::error::RequestError;
use crate::handler::HandlerError;
use crate::mcp::{Era, ErrorKind, Method};
use crate::model::{Elicitation, Elicited, Root, Sampled, Sampling};
use crate::schema::Schema;

/// Questions to the client, in every revision.
///
/// All of them fail at once, before anything is sent, when the client did not declare the
/// capability they need (R-CAP-03). In revisions with a handshake they are requests to the client.
/// They time out after [`Limits::max_request_timeout`](crate::limits::Limits) and are cancelled
/// with the call. Meanwhile the connection continues: the client may call further tools, whose
/// handlers may ask in turn.
///
/// From 2026-07-28 on a question ends the call with an `input_required` result, and the client
/// repeats the call with the answers. **The handler then runs from its beginning again** and gets
/// the earlier answers at once, so code before a question runs again. The server keeps no state in
/// between; the state that the client holds is signed
/// ([`Builder::state_key`](crate::server::Builder::state_key)). Tools, resources and prompts may ask;
/// completions may not (R-CMP-06).
impl Context {
    /// Asks the client's model to continue a conversation.
    ///
    /// ```
    /// use mcpbolt::model::Sampling;
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
    /// [`RequestError::Unsupported`] when the client declared no sampling; else the client's error,
    /// a timeout or the end of the connection.
    pub async fn sample(&self, sampling: Sampling) -> Result<Sampled, RequestError> {
        self.may_ask(|capabilities| sampling.check(self.revision(), capabilities))?;
        self.ask(Method::CreateMessage, Some(json(&sampling)?), parse)
            .await
    }

    /// Asks the user for input. The content of a form is checked against its schema (R-ELI-06).
    ///
    /// # Errors
    /// [`RequestError::Unsupported`] when the client does not support this kind of elicitation;
    /// else the client's error, a timeout or the end of the connection.
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
                let misfit = |_| RequestError::BadAnswer("the content does not fit the form");
                form.check(&json(content)?).map_err(misfit)?;
            }
            Ok(elicited)
        };
        self.ask(Method::Elicit, Some(params), read).await
    }

    /// Shows the user a form made from the fields of `T`, which must have primitive types; `None`
    /// when the user declines or cancels.
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
                let misfit = RequestError::BadAnswer("the content does not fit the form");
                filled.map(Some).map_err(|_| misfit)
            }
            Elicited::Declined | Elicited::Cancelled => Ok(None),
        }
    }

    /// Lists the folders and files (roots) that the client wants servers to stay within.
    ///
    /// # Errors
    /// [`RequestError::Unsupported`] when the client declared no roots; else the client's error, a
    /// timeout or the end of the connection.
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

    /// Fails unless the client declared the capability at `path`, for example
    /// `["elicitation", "url"]`. Return the error from the handler: it tells the client which
    /// capability to declare (R-ERR-16).
    ///
    /// # Errors
    /// When the client did not declare the capability.
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

    /// Returns this context with a name for the next question asked through it. Clients of
    /// 2026-07-28 see the name as the question's key. Names must differ within a call; unnamed
    /// questions are numbered.
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
            Era::Stateless => check(
                self.round_trips()
                    .map_or("{}", |trips| trips.capabilities()),
            ),
        }
    }

    /// Asks one question and returns its answer.
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
        if let Some(trips) = self.round_trips() {
            let name = self.question.as_deref();
            return Ok(trips.ask(name, method, params, read).await);
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

/// Reduces a field to what elicitation forms allow: no `null`, because `required` expresses that, choices
/// as the specification writes them, and only its formats.
fn plain(field: &mut Value) {
    let Some(field) = field.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(mut forms)) = field.remove("anyOf") {
        forms.retain(|form| form["type"] != "null");
        match forms.first_mut().map(Value::take) {
            Some(Value::Object(form)) if forms.len() == 1 => {
                form.into_iter().for_each(|(name, value)| {
                    field.entry(name).or_insert(value);
                });
            }
            // No form of a field: the check of the whole form says so.
            _ => {}
        }
    }
    if let Some(Value::Array(types)) = field.get("type") {
        let own = types.iter().find(|name| *name != "null").cloned();
        field.insert("type".to_owned(), own.unwrap_or_default());
    }
    if let Some(Value::Array(choices)) = field.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    if let Some(choices) = titled(field.get("oneOf")) {
        field.insert("type".to_owned(), "string".into());
        field.insert("oneOf".to_owned(), choices);
    }
    if let Some(items) = field.get_mut("items")
        && let Some(choices) = titled(items.get("oneOf"))
    {
        *items = serde_json::json!({ "anyOf": choices });
    }
    let formats = ["email", "uri", "date", "date-time"];
    let has_name = |format: &Value| format.as_str().is_some_and(|name| formats.contains(&name));
    if field.get("format").is_some_and(|format| !has_name(format)) {
        field.remove("format");
    }
}

/// The choices of an enum whose variants have titles or documentation, each with its title; `None` if some of
/// them are no texts.
fn titled(variants: Option<&Value>) -> Option<Value> {
    let mut choices = Vec::new();
    for variant in variants?.as_array()? {
        let several = variant.get("enum").and_then(Value::as_array);
        let one = variant.get("const");
        let title = variant.get("title").or(variant.get("description"));
        for choice in several.into_iter().flatten().chain(one) {
            let title = title.unwrap_or(choice);
            choices.push(serde_json::json!({ "const": choice.as_str()?, "title": title }));
        }
    }
    Some(choices.into())
}

fn json(value: &impl Serialize) -> Result<String, RequestError> {
    serde_json::to_string(value).map_err(|_| RequestError::Misuse("this cannot be JSON"))
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<T, RequestError> {
    serde_json::from_str(json).map_err(|_| RequestError::BadAnswer("a result of another shape"))
}
