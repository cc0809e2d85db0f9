//! Subscriptions to a server of 2026-07-28, which sends only the notifications it was asked for.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::ops::Not;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use crate::connection::{Handle, RequestOptions, Response};
use crate::error::RequestError;
use crate::json::{number, reader};
use crate::limits::MAX_LISTENS;
use crate::mcp::{Method, meta};

/// The notifications a client asks for; they arrive at
/// [`ClientBuilder::on_notice`](super::ClientBuilder::on_notice).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interests {
    /// Changes of the list of tools.
    #[serde(rename = "toolsListChanged", skip_serializing_if = "Not::not")]
    pub tools: bool,
    /// Changes of the list of prompts.
    #[serde(rename = "promptsListChanged", skip_serializing_if = "Not::not")]
    pub prompts: bool,
    /// Changes of the list of resources.
    #[serde(rename = "resourcesListChanged", skip_serializing_if = "Not::not")]
    pub resources: bool,
    /// Updates of these resources.
    #[serde(
        rename = "resourceSubscriptions",
        skip_serializing_if = "Vec::is_empty"
    )]
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
    /// The streams of [`Client::subscribe`](super::Client::subscribe), by URI.
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

    /// Opens a stream of notifications. Resolves when the server has acknowledged the stream.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn open(
        self: &Arc<Self>,
        handle: &Handle,
        interests: Interests,
    ) -> Result<Listening, RequestError> {
        let params = json!({ "notifications": interests }).to_string();
        let options = RequestOptions {
            timeout: Some(Duration::MAX),
            ..RequestOptions::default()
        };
        let name = Method::Listen.name();
        let mut listening = Listening {
            response: handle.request(name, Some(&params), options)?,
            streams: Arc::downgrade(self),
        };
        let id = listening.response.key().get();
        poll_fn(|cx| {
            if self.is_acknowledged(id, cx) {
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

    /// Keeps the stream of a subscribed resource open.
    pub fn keep(&self, uri: &str, listening: Listening) {
        let before = lock(&self.by_uri).insert(uri.to_owned(), listening);
        drop(before);
    }

    /// Ends the stream of a subscribed resource.
    pub fn end(&self, uri: &str) {
        let gone = lock(&self.by_uri).remove(uri);
        drop(gone);
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
