//! The requests, answers and notifications of a client.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpbolt::client::{Interests, SkillInfo};
use mcpbolt::connection::RequestOptions;
use mcpbolt::error::RequestError;
use mcpbolt::mcp::Method;
use mcpbolt::message::Message;
use mcpbolt::model::CompletionTarget;
use mcpbolt::model::Root;
use napi::Env;
use napi_derive::napi;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{self, Result};
use crate::json::{duration, read};
use crate::kinds::Inbound;
use crate::link::{Link, Side};
use crate::outputs::Outputs;
use crate::panics::{self, quietly};
use crate::requests::{Reporter, Way};
use crate::telemetry::sending;

#[derive(Deserialize)]
struct ToComplete {
    prompt: Option<String>,
    template: Option<String>,
    argument: (String, String),
    context: Vec<(String, String)>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToHear {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
}

/// The client asks for progress on a request.
const WANTS_PROGRESS: u32 = 1;
/// The answer to a request may be that it has become a task.
const MAY_BE_TASK: u32 = 2;

#[napi]
impl Link {
    /// Sends a request; returns the number under which its answer will come. Timeouts are in ms, `meta` has
    /// additional members of `_meta`, and `flags` are 1 to ask for progress, 2 if the answer may be a task.
    #[napi(catch_unwind)]
    #[allow(
        clippy::too_many_arguments,
        reason = "an object of options would cost each request more"
    )]
    pub fn request(
        &mut self,
        env: Env,
        method: String,
        params: Option<String>,
        timeout_ms: Option<f64>,
        max_timeout_ms: Option<f64>,
        flags: u32,
        meta: Option<String>,
    ) -> Result<u32> {
        panics::point("request");
        let timeout = timeout_ms.map(duration).transpose()?;
        let max_timeout = max_timeout_ms.map(duration).transpose()?;
        let number = self.requests.reserve();
        let reports = flags & WANTS_PROGRESS != 0;
        let options = RequestOptions {
            timeout,
            max_timeout,
            progress: reports.then(|| Reporter::new(&self.inbox, number).progress()),
            meta: meta.map(Into::into),
            ..RequestOptions::default()
        };
        let asking = self.client().and_then(|client| {
            let send = || client.request(&method, params.as_deref(), options);
            let asking = sending(env, 0, send);
            asking.map_err(error::request)
        });
        match asking {
            Ok(mut asking) => {
                if flags & MAY_BE_TASK != 0 {
                    asking.return_task();
                }
                let way = match Method::parse(&method) {
                    Some(Method::ListTools) => Way::Listing(self.client()?.clone(), asking),
                    _ => Way::Request(asking),
                };
                self.requests.wait(number, way, &self.inbox);
                Ok(number)
            }
            Err(why) => {
                self.requests.forget(number);
                Err(why)
            }
        }
    }

    /// Cancels a pending request, and tells the peer.
    #[napi(catch_unwind)]
    pub fn cancel(&mut self, number: u32, reason: Option<String>) {
        quietly(|| self.requests.cancel(number, reason.as_deref()));
    }

    /// JavaScript's answer to a request of the server: a result, or the text of a failure.
    #[napi(catch_unwind)]
    pub fn answer(&self, number: u32, is_result: bool, text: String) {
        if let Side::Client(client) = &self.side {
            let answer = if is_result { Ok(text) } else { Err(text) };
            client.questions.answer(number, answer);
        }
    }

    /// Sends a notification.
    #[napi(catch_unwind)]
    pub fn notify(&self, method: String, params: Option<String>) -> Result<()> {
        let sent = self.client()?.handle().notify(&method, params.as_deref());
        sent.map_err(error::request)
    }

    /// Responses without a pending request, and frames that are not messages, since the start.
    #[napi(catch_unwind)]
    pub fn strays(&self) -> Result<f64> {
        Ok(self.client()?.handle().stray_count() as f64)
    }

    /// Subscribes to a resource, or unsubscribes. Returns the number under which the answer will come, like
    /// the functions below.
    #[napi(catch_unwind)]
    pub fn subscribe(&mut self, env: Env, uri: String, wanted: bool) -> Result<u32> {
        self.run(env, move |client, _| async move {
            match wanted {
                true => client.subscribe(&uri).await,
                false => client.unsubscribe(&uri).await,
            }
        })
    }

    /// Listens for changes. Reports when the server has agreed; the answer comes at the end.
    #[napi(catch_unwind)]
    pub fn listen(&mut self, env: Env, json: String) -> Result<u32> {
        let ToHear {
            tools,
            prompts,
            resources,
            uris,
        } = read(&json)?;
        let interests = Interests {
            tools,
            prompts,
            resources,
            uris,
        };
        self.run(env, move |client, reporter| async move {
            let listening = client.listen(interests).await?;
            reporter.report(Inbound::Listening, listening.id().to_string());
            listening.await.map(drop)
        })
    }

    /// Completes an argument.
    #[napi(catch_unwind)]
    pub fn complete(&mut self, env: Env, json: String) -> Result<u32> {
        let asked: ToComplete = read(&json)?;
        self.run(env, move |client, _| async move {
            let target = match (&asked.prompt, &asked.template) {
                (Some(name), _) => CompletionTarget::prompt(name),
                (None, Some(uri)) => CompletionTarget::resource(uri),
                (None, None) => {
                    return Err(RequestError::Misuse(
                        "name the prompt or the template to complete",
                    ));
                }
            };
            let (name, value) = &asked.argument;
            let context = asked
                .context
                .iter()
                .map(|(name, value)| (&**name, &**value));
            let context: Vec<_> = context.collect();
            client.complete(&target, (name, value), &context).await
        })
    }

    /// Replaces the roots, and notifies the server.
    #[napi(catch_unwind)]
    pub fn set_roots(&self, json: String) -> Result<()> {
        let roots: Vec<Root> = read(&json)?;
        self.client()?.set_roots(roots).map_err(error::request)
    }

    /// Replaces the output schemas that results are validated against: pairs of tool name and schema, as JSON.
    #[napi(catch_unwind)]
    pub fn learn_outputs(&mut self, json: String) -> Result<()> {
        self.outputs = Outputs::new(read(&json)?);
        Ok(())
    }

    /// Why the structured content of a tool, as JSON, does not fit its output schema; `None` if it fits.
    #[napi(catch_unwind)]
    pub fn misfit(&self, tool: String, json: String) -> Option<String> {
        self.outputs.misfit(&tool, &json)
    }

    /// Waits for the result of a task at the server; each state that is seen is reported as progress.
    #[napi(catch_unwind)]
    pub fn follow_task(&mut self, env: Env, id: String) -> Result<u32> {
        self.run(env, move |client, reporter| async move {
            let seen = |state: &str| reporter.report(Inbound::Progress, state.to_owned());
            raw_result(&client.task(&id).answer(seen).await?)
        })
    }

    /// Lists the skills of the server.
    #[napi(catch_unwind)]
    pub fn list_skills(&mut self, env: Env) -> Result<u32> {
        self.run(env, |client, _| async move { client.list_skills().await })
    }

    /// Fetches the skill whose manifest is at that URI.
    #[napi(catch_unwind)]
    pub fn skill(&mut self, env: Env, uri: String) -> Result<u32> {
        self.run(env, |client, _| async move { client.skill(&uri).await })
    }

    /// Reads the manifest of a skill, which is passed as it was listed.
    #[napi(catch_unwind)]
    pub fn load_skill(&mut self, env: Env, skill: String) -> Result<u32> {
        let skill: SkillInfo = read(&skill)?;
        self.run(env, move |client, _| async move {
            client.load_skill(&skill).await
        })
    }

    /// Reads a file of a skill; the answer is base64.
    #[napi(catch_unwind)]
    pub fn read_skill_file(&mut self, env: Env, skill: String, uri: String) -> Result<u32> {
        let skill: SkillInfo = read(&skill)?;
        self.run(env, move |client, _| async move {
            let bytes = client.read_skill_file(&skill, &uri).await?;
            Ok(STANDARD.encode(bytes))
        })
    }

    /// Lists the contents of a folder of a skill.
    #[napi(catch_unwind)]
    pub fn read_folder(&mut self, env: Env, uri: String) -> Result<u32> {
        self.run(
            env,
            |client, _| async move { client.read_directory(&uri).await },
        )
    }
}

fn raw_result(answer: &Message) -> std::result::Result<Box<RawValue>, RequestError> {
    let result = answer.as_ref().result().unwrap_or("{}");
    RawValue::from_string(result.to_owned())
        .map_err(|_| RequestError::BadAnswer("a result of another shape"))
}
