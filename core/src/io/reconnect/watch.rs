//! Restores change streams that end before their connection, as streams on HTTP may.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use super::{Backoff, Shared};
use crate::client::Client;
use crate::error::RequestError;

/// A change stream that ended before its connection (R-SUB-10).
enum Unheard {
    Interests,
    Resource(String),
}

impl Shared {
    /// Waits for the end of a connection. A change stream that ends earlier is opened again; one that
    /// is refused does not delay the others.
    pub(super) async fn watch(&self, client: &Client, backoff: Backoff) {
        // Never completes by itself: the sleep ends with the connection.
        let mut end = pin!(client.handle().sleep(Duration::MAX));
        let mut returns: Vec<Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
        poll_fn(|cx| {
            if end.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            loop {
                returns.retain_mut(|each| each.as_mut().poll(cx).is_pending());
                match self.poll_unheard(client, cx) {
                    Poll::Ready(unheard) => {
                        returns.push(Box::pin(self.bring_back(client, unheard, backoff)));
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }

    /// Opens the stream again until that succeeds.
    async fn bring_back(&self, client: &Client, unheard: Unheard, backoff: Backoff) {
        let mut failures = 0;
        while !client.handle().is_closed() {
            failures += 1;
            client.handle().sleep(backoff.wait(failures)).await;
            if self.hear_again(client, &unheard).await.is_ok() {
                return;
            }
        }
    }

    fn poll_unheard(&self, client: &Client, cx: &mut Context<'_>) -> Poll<Unheard> {
        let mut state = self.lock();
        if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        if let Some(listening) = &mut state.listening
            && Pin::new(listening).poll(cx).is_ready()
        {
            let ended = state.listening.take();
            drop(state);
            drop(ended);
            return Poll::Ready(Unheard::Interests);
        }
        drop(state);
        client.poll_unsubscribed(cx).map(Unheard::Resource)
    }

    /// Opens the stream again, unless it is no longer wanted.
    async fn hear_again(&self, client: &Client, unheard: &Unheard) -> Result<(), RequestError> {
        let wishes = self.lock().wishes.clone();
        match unheard {
            Unheard::Interests => {
                let Some(interests) = wishes.interests else {
                    return Ok(());
                };
                let listening = client.listen(interests).await?;
                let mut late = None;
                self.change(|state| match state.listening {
                    Some(_) => late = Some(listening),
                    None => state.listening = Some(listening),
                });
                drop(late);
                Ok(())
            }
            Unheard::Resource(uri) if wishes.uris.contains(uri) => client.subscribe(uri).await,
            Unheard::Resource(_) => Ok(()),
        }
    }
}
