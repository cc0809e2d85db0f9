//! The host of a client's connection.

use std::sync::Arc;

use super::client::Client;
use crate::connection::{
    Answer, Batch, Call, CallKey, Disposition, Handle, Host, IncomingRequest, Operation,
};
use crate::error::ConnectionError;
use crate::handler::guarded::{Outcome, guarded};
use crate::handler::{HandlerError, Job, Spawner};
use crate::mcp::{ErrorKind, Method, Revision};
use crate::message::MessageRef;
use crate::panics::contain;

/// The program's callbacks.
#[derive(Default)]
pub(super) struct Hooks {
    /// Receives the method and the params of each notification from the server.
    pub notice: Option<Report>,
    pub opened: Option<Hook>,
    pub closed: Option<Hook>,
}

type Report = Box<dyn FnMut(&str, Option<&str>) + Send>;
type Hook = Box<dyn FnMut(&Client) + Send>;

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks")
            .field("notice", &self.notice.is_some())
            .field("opened", &self.opened.is_some())
            .field("closed", &self.closed.is_some())
            .finish()
    }
}

/// The [`Host`] of a client: passes server requests to handlers, refuses those without a handler,
/// and forwards notifications.
#[derive(Default)]
pub struct ClientHost {
    hooks: Hooks,
    serving: Option<(Client, Arc<dyn Spawner>)>,
    relay: Option<Relay>,
}

/// Takes the requests and notifications of the server in place of handlers.
type Relay = Box<dyn Host + Send>;

/// Makes the relay of a connection.
pub(super) type MakeRelay = Box<dyn FnOnce(Handle) -> Relay + Send>;

impl ClientHost {
    /// Creates a host without handlers that ignores notifications.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the host of a client with handlers.
    pub(super) fn serving(client: Client, spawner: Arc<dyn Spawner>, hooks: Hooks) -> Self {
        Self {
            hooks,
            serving: Some((client, spawner)),
            relay: None,
        }
    }

    /// Passes requests and notifications of the server to `relay`, if there is one.
    pub(super) fn relayed(self, relay: Option<Relay>) -> Self {
        Self { relay, ..self }
    }

    fn tell<H: FnMut(&Client)>(&mut self, which: impl FnOnce(&mut Hooks) -> Option<&mut H>) {
        if let Some((client, _)) = &self.serving
            && let Some(hook) = which(&mut self.hooks)
        {
            contain("a hook", || hook(client));
        }
    }
}

impl std::fmt::Debug for ClientHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientHost").finish_non_exhaustive()
    }
}

impl Host for ClientHost {
    fn arrives_within(&mut self, request: Option<u64>) {
        if let Some(relay) = &mut self.relay {
            relay.arrives_within(request);
        }
    }

    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        if let Some(relay) = &mut self.relay {
            return relay.request(request, answer);
        }
        let offers = |(client, _): &(Client, _)| {
            request
                .method
                .is_some_and(|method| client.core.responder.offers(method))
        };
        if self.serving.as_ref().is_some_and(offers) {
            return Disposition::Deferred(Operation::Own(0));
        }
        let why = "this client does not offer that";
        answer.error(ErrorKind::MethodNotFound, why, None)
    }

    fn dispatch(&mut self, batch: Batch) {
        if let Some(relay) = &mut self.relay {
            return relay.dispatch(batch);
        }
        let Some((client, spawner)) = &self.serving else {
            return;
        };
        let client = client.clone();
        let jobs = batch
            .into_calls()
            .map(move |call| -> Job { Box::pin(carry_out(client.clone(), call)) });
        spawner.spawn_batch(Box::new(jobs));
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        if let Some(relay) = &mut self.relay {
            relay.cancelled(key, reason);
        }
    }

    fn overheard(&mut self, message: MessageRef<'_>) {
        if let Some(relay) = &mut self.relay {
            relay.overheard(message);
        }
    }

    fn notification(&mut self, message: MessageRef<'_>) {
        if let Some(relay) = &mut self.relay {
            return relay.notification(message);
        }
        let Some(method) = message.method() else {
            return;
        };
        let known = Method::parse(&method);
        if let (Some(known), Some((client, _))) = (known, &self.serving)
            && let Some(cache) = &client.core.cache
        {
            cache.note(known);
        }
        if known == Some(Method::SubscriptionAcknowledged)
            && let Some((client, _)) = &self.serving
            && let Some(streams) = &client.core.streams
        {
            return streams.acknowledge(message.params().unwrap_or("{}"));
        }
        if let Some(report) = &mut self.hooks.notice {
            // A panic in the callback does not affect the connection.
            contain("a notice handler", || report(&method, message.params()));
        }
    }

    fn opened(&mut self, revision: Revision) {
        if let Some(relay) = &mut self.relay {
            relay.opened(revision);
        }
        self.tell(|hooks| hooks.opened.as_mut());
    }

    fn session_ended(&mut self) -> Vec<u64> {
        let relay = self.relay.as_mut();
        relay.map_or_else(Vec::new, |relay| relay.session_ended())
    }

    fn is_of_ended_session(&self, id: u64) -> bool {
        let relay = self.relay.as_ref();
        relay.is_some_and(|relay| relay.is_of_ended_session(id))
    }

    fn closed(&mut self, reason: &ConnectionError) {
        if let Some(relay) = &mut self.relay {
            relay.closed(reason);
        }
        self.tell(|hooks| hooks.closed.as_mut());
    }
}

/// Runs one server request and answers it. A cancelled request is not answered.
async fn carry_out(client: Client, call: Call) {
    let Some(method) = call.method else { return };
    let Call {
        message,
        reply,
        cancel,
        ..
    } = call;
    let params = message.as_ref().params().unwrap_or("{}").to_owned();
    let (core, revision) = (client.core.clone(), reply.revision());
    let make = || {
        client
            .core
            .responder
            .clone()
            .answer((method, params), core, revision, cancel.clone())
    };
    let outcome = match guarded(cancel.cancelled(), make).await {
        Outcome::Made(outcome) => outcome,
        Outcome::Panicked => Err(HandlerError::new("the handler failed unexpectedly")),
        Outcome::Cancelled => return,
    };
    let mut replies = client.handle().replies();
    match outcome {
        Ok(result) => replies.result(&reply, |writer| writer.object(&result)),
        Err(error) => replies.error(&reply, error.kind(), &error.to_string(), error.data()),
    }
    replies.submit_last();
}
