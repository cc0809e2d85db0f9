//! Questions to the client of a call, in either era: of middleware, and of servers of the stateless era.

use std::sync::Arc;

use super::declared::answers;
use super::middleware::{Caller, ChainAnswer, ChainRequest, ChainResponse, refusal};
use super::params::Edit;
use super::question::{Asker, Question, Withdrawn};
use super::route::Route;
use super::translate;
use crate::connection::{Handle, ReplyTo, RequestOptions};
use crate::error::RequestError;
use crate::mcp::code::INTERNAL_ERROR;
use crate::mcp::{Era, Method};

impl Caller for Route {
    fn ask_client(
        self: Arc<Self>,
        declared: Option<Box<str>>,
        question: ChainRequest,
    ) -> ChainAnswer<'static> {
        Box::pin(ask(self, declared, question))
    }

    fn signs(&self) -> (u64, bool) {
        Self::signs(self)
    }
}

/// Asks the client of a call.
///
/// # Errors
/// If the client does not answer such questions, or what ends the question.
async fn ask(
    route: Arc<Route>,
    declared: Option<Box<str>>,
    question: ChainRequest,
) -> Result<ChainResponse, RequestError> {
    let Some((front, reply)) = route.reply() else {
        return Err(RequestError::Cancelled(None));
    };
    let peer = front.peer().map(|peer| &*peer.capabilities);
    let era = route.revision.era();
    let capabilities = match era {
        Era::Handshake => peer,
        Era::Stateless => declared.as_deref(),
    };
    if !answers(capabilities.unwrap_or("{}"), question.known_method()) {
        return Err(RequestError::Unsupported(capability(&question)));
    }
    if era == Era::Handshake {
        return by_request(&front, &reply, question).await;
    }
    let withdrawn = Withdrawn::default();
    let asker = Arc::new(Nobody);
    let (answer, question) = Question::new(&question, &route.timers, withdrawn.token(), asker);
    if let Err(late) = route.ask(question) {
        late.refuse(INTERNAL_ERROR, "the call has ended");
    }
    route.end_round();
    answer.await
}

/// Asks a client of the handshake era within its call.
///
/// # Errors
/// What ends the question.
pub(super) async fn by_request(
    front: &Handle,
    reply: &ReplyTo,
    question: ChainRequest,
) -> Result<ChainResponse, RequestError> {
    let options = RequestOptions {
        timeout: Some(front.config().limits.max_request_timeout),
        within: Some(reply.key()),
        ..RequestOptions::default()
    };
    let params = question.params().to_owned();
    let params = translate::question(question.known_method(), params, Era::Handshake);
    let method = question.method();
    let request = (&*method, Some(&*params));
    let asked = front.forward(request, (options, true), |out, _, trace| {
        let edit = Edit {
            trace,
            ..Edit::default()
        };
        edit.append_own(out, &params);
    });
    match asked?.await {
        Ok(answer) => Ok(answer.into()),
        // It is not the server that was too slow.
        Err(RequestError::TimedOut) => {
            Err(refusal(INTERNAL_ERROR, "the client did not answer in time"))
        }
        Err(error) => Err(error),
    }
}

/// The capability that a client needs to answer.
fn capability(question: &ChainRequest) -> &'static str {
    match question.known_method() {
        Some(Method::CreateMessage) => "sampling",
        Some(Method::ListRoots) => "roots",
        _ => "elicitation",
    }
}

/// A question of middleware belongs to one call, and is put to no other.
struct Nobody;

impl Asker for Nobody {
    fn ask_elsewhere(&self, question: Question) {
        question.refuse(INTERNAL_ERROR, "the call has ended");
    }
}
