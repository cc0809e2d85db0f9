//! Subscriptions to a server of 2026-07-28, which sends only the notifications it was asked for.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::json;

use super::Client;
use crate::connection::{RequestOptions, Response};
use crate::error::RequestError;
use crate::json::{number, reader};
use crate::limits::MAX_LISTENS;
use crate::mcp::{Method, meta};

/// The notifications a client asks for; they arrive at
/// [`ClientBuilder::on_notice`](super::ClientBuilder::on_notice).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interests {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the list of resources.
    pub resources: bool,
    /// Updates of these resources.
    pub uris: Vec<String>,
}

/// An open stream of notifications. The future completes when the stream ends, with `Ok` if the
/// server ended it in good order.
///
/// # Cancel safety
/// Dropping it ends the stream and notifies the server.
#[derive(Debug)]
#[must_use = "dropping it ends the stream"]
pub struct Listening {
    response: Response,
    streams: Weak<Streams>,
}

/// The streams of one client.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// Whether the server has acknowledged a stream, by the id of its request.
    acknowledged: Mutex<HashMap<u64, Acknowledged>>,
    /// The streams of [`Client::subscribe`], by URI.
    by_uri: Mutex<HashMap<String, Listening>>,
}

#[derive(Debug)]
enum Acknowledged {
    Not(Waker),
    Yes,
}

impl Streams {
    /// Records that the server acknowledged a stream, perhaps before anyone waits for it.
    pub fn acknowledge(&self, params: &str) {
        let id = reader::find_path(params, &["_meta", meta::SUBSCRIPTION_ID]);
        let Some(id) = id.and_then(number::as_u64) else {
            return;
        };
        let mut acknowledged = lock(&self.acknowledged);
        if acknowledged.len() >= 2 * MAX_LISTENS && !acknowledged.contains_key(&id) {
            return;
        }
        if let Some(Acknowledged::Not(waker)) = acknowledged.insert(id, Acknowledged::Yes) {
            waker.wake();
        }
    }

    /// Resolves to a resource whose stream has ended, and removes the stream.
    #[cfg(feature = "stdio")]
    pub fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<String> {
        let mut by_uri = lock(&self.by_uri);
        let mut has_ended = |listening: &mut Listening| Pin::new(listening).poll(cx).is_ready();
        let ended = by_uri
            .iter_mut()
            .find_map(|(uri, it)| has_ended(it).then(|| uri.clone()));
        let Some(uri) = ended else {
            return Poll::Pending;
        };
        let gone = by_uri.remove(&uri);
        drop(by_uri);
        drop(gone);
        Poll::Ready(uri)
    }

    fn is_acknowledged(&self, id: u64, cx: &Context<'_>) -> bool {
        let mut acknowledged = lock(&self.acknowledged);
        let yes = matches!(acknowledged.get(&id), Some(Acknowledged::Yes));
        if !yes {
            acknowledged.insert(id, Acknowledged::Not(cx.waker().clone()));
        }
        yes
    }
}

impl Client {
    /// Opens a stream of change notifications. Resolves once the server has acknowledged the
    /// stream; changes from then on are reported. Interests that the server does not offer are left
    /// out (R-SUB-03).
    ///
    /// ```no_run
    /// # async fn example(client: mcpbolt::client::Client) -> Result<(), mcpbolt::error::RequestError> {
    /// use mcpbolt::client::Interests;
    /// let interests = Interests { tools: true, ..Interests::default() };
    /// let listening = client.listen(interests).await?;
    /// // … and what is told comes through `on_notice`, until it is dropped.
    /// # drop(listening); Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Before 2026-07-28, where servers notify about lists without being asked and about resources
    /// by [`subscribe`](Self::subscribe); for a client without a builder; when the server refuses.
    pub async fn listen(&self, interests: Interests) -> Result<Listening, RequestError> {
        self.knows(Method::Listen, "subscriptions/listen")?;
        let Some(streams) = &self.streams else {
            let why = "who listens needs a client made by Client::builder";
            return Err(RequestError::Misuse(why));
        };
        let Interests {
            tools,
            prompts,
            resources,
            uris,
        } = interests;
        let mut filter = json!({});
        for (name, wanted) in [
            ("toolsListChanged", tools),
            ("promptsListChanged", prompts),
            ("resourcesListChanged", resources),
        ] {
            if wanted {
                filter[name] = true.into();
            }
        }
        if !uris.is_empty() {
            filter["resourceSubscriptions"] = uris.into();
        }
        let params = json!({ "notifications": filter }).to_string();
        let options = RequestOptions {
            timeout: Some(Duration::MAX),
            ..RequestOptions::default()
        };
        let name = Method::Listen.name();
        let mut listening = Listening {
            response: self.handle().request(name, Some(&params), options)?,
            streams: Arc::downgrade(streams),
        };
        let id = listening.response.key().get();
        poll_fn(|cx| {
            if streams.is_acknowledged(id, cx) {
                return Poll::Ready(Ok(()));
            }
            let ended = |outcome: Result<(), RequestError>| {
                outcome.and(Err(RequestError::BadAnswer("the stream ended as it began")))
            };
            Pin::new(&mut listening).poll(cx).map(ended)
        })
        .await?;
        Ok(listening)
    }

    /// Listens to one resource, until [`forget`](Self::forget).
    pub(super) async fn listen_to(&self, uri: &str) -> Result<(), RequestError> {
        let interests = Interests {
            uris: vec![uri.to_owned()],
            ..Interests::default()
        };
        let listening = self.listen(interests).await?;
        if let Some(streams) = &self.streams {
            lock(&streams.by_uri).insert(uri.to_owned(), listening);
        }
        Ok(())
    }

    /// Resolves to a subscribed resource whose stream has ended.
    #[cfg(feature = "stdio")]
    pub(crate) fn poll_unsubscribed(&self, cx: &mut Context<'_>) -> Poll<String> {
        match &self.streams {
            Some(streams) => streams.poll_ended(cx),
            None => Poll::Pending,
        }
    }

    pub(super) fn forget(&self, uri: &str) {
        let gone = self
            .streams
            .as_ref()
            .map(|streams| lock(&streams.by_uri).remove(uri));
        drop(gone);
    }
}

impl Listening {
    /// The id of the stream, which every notification on it carries in its `_meta`
    /// ([`SUBSCRIPTION_ID`](meta::SUBSCRIPTION_ID), R-SUB-06).
    pub fn id(&self) -> u64 {
        self.response.key().get()
    }
}

impl Future for Listening {
    type Output = Result<(), RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.response)
            .poll(cx)
            .map(|outcome| outcome.map(drop))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(streams) = self.streams.upgrade() {
            lock(&streams.acknowledged).remove(&self.response.key().get());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
