//! Handlers for server requests: sampling, elicitation, roots.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};

use super::context::Context;
use crate::error::RequestError;
use crate::handler::HandlerError;
use crate::handler::guarded::Made;
use crate::mcp::{
    Elicitation, Elicited, Era, Method, Revision, Root, Sampled, Sampling, extension,
};
use crate::schema::Schema;

type Ask<P, R> = Box<dyn Fn(P, Context) -> Made<Result<R, HandlerError>> + Send + Sync>;

/// The handlers of a client; running requests share them.
#[derive(Default)]
pub(super) struct Handlers {
    sampling: Option<Ask<Sampling, Sampled>>,
    sampling_tools: bool,
    forms: Option<Ask<Elicitation, Elicited>>,
    pages: Option<Ask<Elicitation, Elicited>>,
    roots: Option<RwLock<Arc<[Root]>>>,
    /// Settings by id.
    extensions: BTreeMap<String, String>,
}

fn ask<P, R, F>(handler: impl Fn(P, Context) -> F + Send + Sync + 'static) -> Ask<P, R>
where
    F: Future<Output = Result<R, HandlerError>> + Send + 'static,
{
    Box::new(move |params, context| Box::pin(handler(params, context)))
}

impl Handlers {
    pub fn set_sampling<F>(
        &mut self,
        tools: bool,
        handler: impl Fn(Sampling, Context) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<Sampled, HandlerError>> + Send + 'static,
    {
        self.sampling = Some(ask(handler));
        self.sampling_tools = tools;
    }

    pub fn set_forms<F>(
        &mut self,
        handler: impl Fn(Elicitation, Context) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<Elicited, HandlerError>> + Send + 'static,
    {
        self.forms = Some(ask(handler));
    }

    pub fn set_pages<F>(
        &mut self,
        handler: impl Fn(Elicitation, Context) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<Elicited, HandlerError>> + Send + 'static,
    {
        self.pages = Some(ask(handler));
    }

    pub fn add_extension(&mut self, id: &str, settings: &str) {
        self.extensions.insert(id.to_owned(), settings.to_owned());
    }

    pub fn has_extension(&self, id: &str) -> bool {
        self.extensions.contains_key(id)
    }

    /// R-CAP-06
    pub fn check_extensions(&self) -> Result<(), RequestError> {
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

    pub fn set_roots(&mut self, roots: Vec<Root>) {
        self.roots = Some(RwLock::new(roots.into()));
    }

    /// Replaces the roots. Returns whether roots are offered at all.
    pub fn replace_roots(&self, roots: Vec<Root>) -> bool {
        let Some(own) = &self.roots else {
            return false;
        };
        *own.write().unwrap_or_else(PoisonError::into_inner) = roots.into();
        true
    }

    /// R-ROO-01
    pub fn check_roots(&self) -> Result<(), RequestError> {
        let roots = self.current_roots();
        roots
            .iter()
            .flat_map(|roots| &**roots)
            .try_for_each(Root::check)
    }

    fn current_roots(&self) -> Option<Arc<[Root]>> {
        let roots = self.roots.as_ref()?;
        let roots = roots.read().unwrap_or_else(PoisonError::into_inner);
        Some(roots.clone())
    }

    /// Returns whether the server may send this request (R-CAP-02).
    pub fn offers(&self, method: Method) -> bool {
        match method {
            Method::CreateMessage => self.sampling.is_some(),
            Method::Elicit => self.forms.is_some() || self.pages.is_some(),
            Method::ListRoots => self.roots.is_some(),
            _ => false,
        }
    }

    /// The capabilities declared in this revision: a JSON object.
    pub fn capabilities(&self, revision: Revision) -> String {
        let rules = revision.rules();
        let mut members = Vec::new();
        if self.roots.is_some() {
            members.push(match rules.era {
                Era::Handshake => "\"roots\":{\"listChanged\":true}",
                Era::Stateless => "\"roots\":{}",
            });
        }
        if self.sampling.is_some() {
            members.push(match self.sampling_tools && rules.sampling_tools {
                true => "\"sampling\":{\"tools\":{}}",
                false => "\"sampling\":{}",
            });
        }
        // R-CAP-04
        members.extend(match (&self.forms, &self.pages) {
            (Some(_), Some(_)) if rules.elicitation_modes => {
                Some("\"elicitation\":{\"form\":{},\"url\":{}}")
            }
            (None, Some(_)) if rules.elicitation_modes => Some("\"elicitation\":{\"url\":{}}"),
            (Some(_), _) if rules.elicitation_modes => Some("\"elicitation\":{\"form\":{}}"),
            (Some(_), _) if rules.elicitation => Some("\"elicitation\":{}"),
            _ => None,
        });
        let mut members: Vec<_> = members.into_iter().map(str::to_owned).collect();
        if rules.era == Era::Stateless && !self.extensions.is_empty() {
            let member = |(id, settings): (&String, &String)| format!("\"{id}\":{settings}");
            let all: Vec<_> = self.extensions.iter().map(member).collect();
            members.push(format!("\"extensions\":{{{}}}", all.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }

    /// Answers a server request with a result, a JSON object.
    pub fn answer(
        self: Arc<Self>,
        method: Method,
        params: String,
        context: Context,
    ) -> Made<Result<String, HandlerError>> {
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

    async fn sample(&self, params: &str, context: Context) -> Result<String, HandlerError> {
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

    async fn elicit(&self, params: &str, context: Context) -> Result<String, HandlerError> {
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
