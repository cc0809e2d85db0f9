//! Subscriptions to a server of 2026-07-28, which sends only the notifications it was asked for.

use std::collections::{HashMap, HashSet};
use std::future::{Future, poll_fn};
use std::mem::{replace, take};
use std::ops::Not;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::connection::{Handle, RequestOptions, Response};
use crate::error::RequestError;
use crate::json::{number, reader};
use crate::mcp::{Method, meta};

/// The notifications a client asks for; they arrive at
/// [`ClientBuilder::on_notice`](super::ClientBuilder::on_notice).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
    acknowledged: Interests,
    streams: Weak<Streams>,
}

/// The streams of one client.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// What the server has acknowledged of each open stream, by the id of its request.
    acknowledged: Mutex<HashMap<u64, Acknowledged>>,
    /// The streams of [`Client::subscribe`](super::Client::subscribe), by URI.
    by_uri: Mutex<HashMap<String, Listening>>,
    /// The subscriptions of a session, which have no streams of their own.
    subscribed: Mutex<HashSet<String>>,
    /// Whether the log level or the roots of the session are others than at its beginning.
    has_settings: AtomicBool,
}

#[derive(Debug)]
enum Acknowledged {
    Not(Option<Waker>),
    Yes(Interests),
}

impl Streams {
    /// Records what the server acknowledged of an open stream.
    pub fn acknowledge(&self, params: &str) {
        let id = reader::find_path(params, &["_meta", meta::SUBSCRIPTION_ID]);
        let Some(id) = id.and_then(number::as_u64) else {
            return;
        };
        let granted = reader::find(params, "notifications").map(serde_json::from_str);
        let granted = granted.and_then(Result::ok).unwrap_or_default();
        let before = match lock(&self.acknowledged).get_mut(&id) {
            Some(stream @ Acknowledged::Not(_)) => replace(stream, Acknowledged::Yes(granted)),
            _ => return,
        };
        if let Acknowledged::Not(Some(waker)) = before {
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
        let mut listening = self.begin(handle, interests)?;
        let id = listening.id();
        listening.acknowledged = poll_fn(|cx| {
            if let Some(granted) = self.take_acknowledged(id, cx) {
                return Poll::Ready(Ok(granted));
            }
            let ended = |outcome: Result<(), RequestError>| {
                outcome.and(Err(RequestError::BadAnswer("the stream ended as it began")))
            };
            Pin::new(&mut listening).poll(cx).map(ended)
        })
        .await?;
        Ok(listening)
    }

    /// Asks for a stream of notifications.
    fn begin(
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
        // The acknowledgement waits for the lock, so it finds the stream.
        let mut acknowledged = lock(&self.acknowledged);
        let response = handle.request(name, Some(&params), options)?;
        acknowledged.insert(response.key().get(), Acknowledged::Not(None));
        Ok(Listening {
            response,
            acknowledged: Interests::default(),
            streams: Arc::downgrade(self),
        })
    }

    /// Keeps the stream of a subscribed resource open.
    pub fn keep(&self, uri: &str, listening: Listening) {
        let before = lock(&self.by_uri).insert(uri.to_owned(), listening);
        drop(before);
    }

    /// Records a subscription of a session.
    pub fn subscribed(&self, uri: &str) {
        lock(&self.subscribed).insert(uri.to_owned());
    }

    /// Ends the stream of a subscribed resource, or forgets its subscription.
    pub fn end(&self, uri: &str) {
        let gone = lock(&self.by_uri).remove(uri);
        drop(gone);
        lock(&self.subscribed).remove(uri);
    }

    /// Whether there is any stream or subscription.
    pub fn are_any(&self) -> bool {
        !lock(&self.acknowledged).is_empty() || !lock(&self.subscribed).is_empty()
    }

    /// Notes that the session has another log level or other roots than at its beginning.
    pub fn set(&self) {
        self.has_settings.store(true, Ordering::Relaxed);
    }

    pub fn has_settings(&self) -> bool {
        self.has_settings.load(Ordering::Relaxed)
    }

    fn take_acknowledged(&self, id: u64, cx: &Context<'_>) -> Option<Interests> {
        let mut acknowledged = lock(&self.acknowledged);
        match acknowledged.get_mut(&id)? {
            Acknowledged::Not(waker) => {
                *waker = Some(cx.waker().clone());
                None
            }
            Acknowledged::Yes(granted) => Some(take(granted)),
        }
    }
}

impl Listening {
    /// The id of the stream, which every notification on it carries in its `_meta`
    /// ([`SUBSCRIPTION_ID`](meta::SUBSCRIPTION_ID), R-SUB-06).
    pub fn id(&self) -> u64 {
        self.response.key().get()
    }

    /// The notifications that the server has agreed to send, of those asked for (R-SUB-03).
    pub fn acknowledged(&self) -> &Interests {
        &self.acknowledged
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
