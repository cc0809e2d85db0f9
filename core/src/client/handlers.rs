//! Handlers for server requests: sampling, elicitation, roots.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};

use super::client::Client;
use super::context::ClientContext;
use super::core::{ClientCore, Responder};
use crate::correlate::CancelToken;
use crate::error::RequestError;
use crate::handler::HandlerError;
use crate::handler::guarded::Made;
use crate::mcp::{Era, Method, Revision, extension};
use crate::model::{Elicitation, Elicited, Root, Sampled, Sampling};
use crate::schema::Schema;

type Handler<P, R> = Box<dyn Fn(P, ClientContext) -> Made<Result<R, HandlerError>> + Send + Sync>;

/// The handlers of a client; running requests share them.
#[derive(Default)]
pub(super) struct Handlers {
    pub sampling: Option<Handler<Sampling, Sampled>>,
    /// Whether the model may call the server's tools.
    pub sampling_tools: bool,
    pub forms: Option<Handler<Elicitation, Elicited>>,
    pub pages: Option<Handler<Elicitation, Elicited>>,
    pub roots: Option<RwLock<Arc<[Root]>>>,
    /// Settings by id.
    pub extensions: BTreeMap<String, String>,
}

pub(super) fn boxed<P, R, F>(
    handler: impl Fn(P, ClientContext) -> F + Send + Sync + 'static,
) -> Handler<P, R>
where
    F: Future<Output = Result<R, HandlerError>> + Send + 'static,
{
    Box::new(move |params, context| Box::pin(handler(params, context)))
}

impl Handlers {
    /// Checks the roots (R-ROO-01) and the extensions (R-CAP-06).
    ///
    /// # Errors
    /// Returns what is wrong with the first one that is not valid.
    pub fn check(&self) -> Result<(), RequestError> {
        let roots = self.current_roots().unwrap_or_default();
        roots.iter().try_for_each(Root::check)?;
        let is_object = |text: &str| {
            let text = text.trim();
            text.starts_with('{') && crate::json::validate(text.as_bytes(), 64).is_ok()
        };
        let mut all = self.extensions.iter();
        match all.all(|(id, settings)| extension::is_id(id) && is_object(settings)) {
            true => Ok(()),
            false => Err(RequestError::Misuse(
                "an extension has a prefix in its name, and an object of settings",
            )),
        }
    }

    fn current_roots(&self) -> Option<Arc<[Root]>> {
        let roots = self.roots.as_ref()?;
        let roots = roots.read().unwrap_or_else(PoisonError::into_inner);
        Some(roots.clone())
    }

    /// The capabilities declared in this revision: a JSON object.
    pub fn capabilities(&self, revision: Revision) -> String {
        let rules = revision.rules();
        let mut members = Vec::new();
        if self.roots.is_some() {
            members.push(match rules.era {
                Era::Handshake => r#""roots":{"listChanged":true}"#.to_owned(),
                Era::Stateless => r#""roots":{}"#.to_owned(),
            });
        }
        if self.sampling.is_some() {
            let tools = match self.sampling_tools && rules.sampling_tools {
                true => r#""tools":{}"#,
                false => "",
            };
            members.push(format!(r#""sampling":{{{tools}}}"#));
        }
        // R-CAP-04
        let modes = match (&self.forms, &self.pages) {
            (Some(_), Some(_)) if rules.elicitation_modes => Some(r#""form":{},"url":{}"#),
            (None, Some(_)) if rules.elicitation_modes => Some(r#""url":{}"#),
            (Some(_), _) if rules.elicitation_modes => Some(r#""form":{}"#),
            (Some(_), _) if rules.elicitation => Some(""),
            _ => None,
        };
        members.extend(modes.map(|modes| format!(r#""elicitation":{{{modes}}}"#)));
        if rules.era == Era::Stateless && !self.extensions.is_empty() {
            let member = |(id, settings): (&String, &String)| format!("\"{id}\":{settings}");
            let all: Vec<_> = self.extensions.iter().map(member).collect();
            members.push(format!("\"extensions\":{{{}}}", all.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }

    async fn sample(&self, params: &str, context: ClientContext) -> Result<String, HandlerError> {
        let handler = self.sampling.as_ref().ok_or_else(not_offered)?;
        let sampling: Sampling = serde_json::from_str(params).map_err(HandlerError::invalid)?;
        let revision = context.revision();
        // R-SMP-02, R-SMP-03, R-SMP-04
        sampling
            .check(revision, &self.capabilities(revision))
            .map_err(HandlerError::invalid)?;
        let sampled = handler(sampling, context).await?;
        if !revision.rules().sampling_tools && sampled.content.len() != 1 {
            let why = "before 2025-11-25 what is sampled has one block of content";
            return Err(HandlerError::new(why));
        }
        Ok(serde_json::to_string(&sampled)?)
    }

    async fn elicit(&self, params: &str, context: ClientContext) -> Result<String, HandlerError> {
        let elicitation = Elicitation::parse(params).map_err(HandlerError::invalid)?;
        let (handler, schema) = match &elicitation {
            Elicitation::Form { schema, .. } => (&self.forms, Some(schema.to_string())),
            Elicitation::Url { .. } => (&self.pages, None),
        };
        // R-ERR-24
        let undeclared = || HandlerError::invalid("this client did not declare that mode");
        let handler = handler.as_ref().ok_or_else(undeclared)?;
        // R-ELI-06: content that the server would refuse is not sent.
        let schema = schema.map(|schema| Schema::new(&schema)).transpose();
        let schema = schema.map_err(HandlerError::invalid)?;
        let elicited = handler(elicitation, context).await?;
        if let (Elicited::Accepted(content), Some(schema)) = (&elicited, &schema) {
            let content = serde_json::to_string(content)?;
            schema.check(&content).map_err(HandlerError::new)?;
        }
        Ok(elicited.to_json(schema.is_some()).to_string())
    }
}

impl Responder for Handlers {
    fn offers(&self, method: Method) -> bool {
        match method {
            Method::CreateMessage => self.sampling.is_some(),
            Method::Elicit => self.forms.is_some() || self.pages.is_some(),
            Method::ListRoots => self.roots.is_some(),
            _ => false,
        }
    }

    fn has_extension(&self, id: &str) -> bool {
        self.extensions.contains_key(id)
    }

    fn replace_roots(&self, roots: Vec<Root>) -> bool {
        let Some(own) = &self.roots else {
            return false;
        };
        *own.write().unwrap_or_else(PoisonError::into_inner) = roots.into();
        true
    }

    fn answer(
        self: Arc<Self>,
        (method, params): (Method, String),
        client: ClientCore,
        revision: Revision,
        cancel: CancelToken,
    ) -> Made<Result<String, HandlerError>> {
        let context = ClientContext::new(Client { core: client }, revision, cancel);
        Box::pin(async move {
            match method {
                Method::CreateMessage => self.sample(&params, context).await,
                Method::Elicit => self.elicit(&params, context).await,
                Method::ListRoots => {
                    let roots = self.current_roots().ok_or_else(not_offered)?;
                    Ok(format!("{{\"roots\":{}}}", serde_json::to_string(&*roots)?))
                }
                _ => Err(not_offered()),
            }
        })
    }
}

fn not_offered() -> HandlerError {
    HandlerError::of(
        crate::mcp::ErrorKind::MethodNotFound,
        "this client does not offer that",
    )
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handlers")
            .field("capabilities", &self.capabilities(Revision::V2025_11_25))
            .finish_non_exhaustive()
    }
}
