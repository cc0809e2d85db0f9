//! Reads the body of a request within its limits.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Buf;
use http_body::Body;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::headers::RequestHeaders;
use super::refusal::{BROKEN, HttpRefusal, NO_MESSAGE, NO_ROOM, TOO_LARGE, TOO_SLOW};
use crate::buffer::{Input, PADDING};
use crate::connection::{Budget, Held};
use crate::limits::{Limits, READ_BYTES, UNCOUNTED_BYTES};

/// Most bytes allocated for a body of which only the length is known.
const FIRST_BYTES: usize = READ_BYTES;
/// The memory that a request takes besides its headers and its body, approximately: the state of its task
/// and, on HTTP/2, of its stream.
const HEAD_BYTES: usize = 2 << 10;
/// The memory that a header takes besides its text, approximately.
const LINE_BYTES: usize = 100;
/// Bytes read before other tasks run.
const TURN_BYTES: usize = 256 << 10;
/// The buffer grows to at most this multiple of the bytes received, up to the announced length.
const BELIEVED: usize = 16;

fn claimed(headers: &RequestHeaders<'_>) -> Option<u64> {
    headers.content_length?.to_str().ok()?.parse().ok()
}

/// The memory that the head of a request takes, approximately.
fn head_bytes(headers: &HeaderMap) -> usize {
    let line =
        |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + LINE_BYTES;
    HEAD_BYTES + headers.iter().map(line).sum::<usize>()
}

/// Reads the whole body.
///
/// # Errors
/// When the body is too long, too slow, broken off or empty, or there is no room for it. If
/// `Content-Length` is set, its length is checked before the body is read.
pub async fn collect<B: Body>(
    headers: &RequestHeaders<'_>,
    body: B,
    limits: &Limits,
    budget: &Arc<Budget>,
) -> Result<Input, HttpRefusal> {
    let max = limits.max_message_bytes;
    let claimed = claimed(headers).unwrap_or_default();
    let claimed = usize::try_from(claimed).unwrap_or(usize::MAX);
    if claimed > max {
        return Err(TOO_LARGE);
    }
    if claimed > UNCOUNTED_BYTES && !budget.has_room(claimed, claimed) {
        return Err(NO_ROOM);
    }
    let first = claimed.min(FIRST_BYTES);
    let input = Input::with_room(first);
    let mut read = pin!(read(body, input, (claimed, max), budget));
    // Usually the body is there already, and no timer is needed.
    let input = match poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx))).await {
        Poll::Ready(input) => input?,
        Poll::Pending => {
            // Until the body is complete, the request is in no count of requests in flight.
            let mut waiting = Held::of(budget);
            if !waiting.try_carry(head_bytes(headers.all) + first) {
                return Err(NO_ROOM);
            }
            let read = tokio::time::timeout(limits.stall_timeout, read).await;
            read.unwrap_or(Err(TOO_SLOW))?
        }
    };
    match input.is_empty() {
        true => Err(NO_MESSAGE),
        false => Ok(input),
    }
}

async fn read<B: Body>(
    body: B,
    mut input: Input,
    (claimed, max): (usize, usize),
    budget: &Arc<Budget>,
) -> Result<Input, HttpRefusal> {
    let mut body = pin!(body);
    // Accounts for the bytes until the connection owns them.
    let mut held: Option<Held> = None;
    let mut turn = TURN_BYTES;
    loop {
        let frame = poll_fn(|cx| {
            let frame = body.as_mut().poll_frame(cx);
            frame.map_err(|_| BROKEN)
        });
        let Some(frame) = frame.await.transpose()? else {
            break;
        };
        let Ok(mut data) = frame.into_data() else {
            continue;
        };
        if data.remaining() > max - input.len() {
            return Err(TOO_LARGE);
        }
        let len = input.len() + data.remaining();
        if len > UNCOUNTED_BYTES {
            let held = held.get_or_insert_with(|| Held::of(budget));
            if !held.try_carry(len) {
                return Err(NO_ROOM);
            }
        }
        if len > FIRST_BYTES && len <= claimed && len + PADDING > input.capacity() {
            // A client that has sent this much is trusted to send more.
            input.reserve(claimed.min(len * BELIEVED));
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            input.extend(chunk);
            let len = chunk.len();
            data.advance(len);
        }
        if let Some(held) = held.as_mut().filter(|held| held.bytes() < input.held()) {
            // The buffer has grown ahead of the data.
            held.carry(input.held());
        }
        if input.len() >= turn {
            turn = input.len() + TURN_BYTES;
            tokio::task::yield_now().await;
        }
    }
    if input.len() > TURN_BYTES {
        // Parsing a long body takes long as well.
        tokio::task::yield_now().await;
    }
    Ok(input)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::Context;

    use hyper::body::Frame;
    use hyper::header::CONTENT_LENGTH;
    use tokio::task::JoinSet;

    use super::*;
    use crate::limits::TotalLimits;

    /// A body that does not end.
    struct Endless;

    impl Body for Endless {
        type Data = &'static [u8];
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Self::Data>, Infallible>>> {
            Poll::Pending
        }
    }

    /// On HTTP/2 one connection has many bodies that are not complete, and no request of them is in flight.
    #[test]
    fn short_bodies_that_are_not_complete_count_in_the_budget() {
        const MAX: usize = 1 << 20;
        let budget = Arc::new(Budget::new(TotalLimits {
            max_bytes: MAX,
            ..TotalLimits::default()
        }));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.expect("a runtime").block_on(async {
            let mut all = JoinSet::new();
            for _ in 0..1_000 {
                let budget = budget.clone();
                all.spawn(async move {
                    let mut headers = HeaderMap::new();
                    headers.insert("x-long", HeaderValue::from_static("a long value"));
                    let limits = Limits::NETWORK;
                    let headers = RequestHeaders::of(&headers);
                    collect(&headers, Endless, &limits, &budget).await.err()
                });
            }
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            let bytes = budget.bytes();
            assert!((MAX / 2..=MAX).contains(&bytes), "{bytes} bytes");
            let refused = std::iter::from_fn(|| all.try_join_next());
            assert!(refused.map(Result::unwrap).all(|why| why == Some(NO_ROOM)));
            all.shutdown().await;
            assert_eq!(budget.bytes(), 0);
        });
    }

    /// A body of which so many bytes have come, and no more.
    struct Begun(usize);

    impl Body for Begun {
        type Data = bytes::Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Self::Data>, Infallible>>> {
            match std::mem::take(&mut self.0) {
                0 => Poll::Pending,
                len => Poll::Ready(Some(Ok(Frame::data(vec![b'x'; len].into())))),
            }
        }
    }

    /// The buffer follows what has come, whatever length was announced.
    #[tokio::test]
    async fn little_is_allocated_for_a_length_alone() {
        let begun = 2 * FIRST_BYTES;
        for (len, most) in [(0, 2 * FIRST_BYTES), (begun, 2 * BELIEVED * begun)] {
            let budget = Arc::<Budget>::default();
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_LENGTH, HeaderValue::from(8 << 20));
            let headers = RequestHeaders::of(&headers);
            let mut collecting = pin!(collect(&headers, Begun(len), &Limits::NETWORK, &budget));
            let polled = poll_fn(|cx| Poll::Ready(collecting.as_mut().poll(cx))).await;
            assert!(polled.is_pending());
            let bytes = budget.bytes();
            assert!((len..=most).contains(&bytes), "{len}: {bytes}");
        }
    }
}
