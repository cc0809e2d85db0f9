//! Reads the body of a request within its limits.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Buf;
use http_body::Body;
use hyper::header::{CONTENT_LENGTH, HeaderMap};

use super::answers::{BROKEN, NO_MESSAGE, OVERLOADED, Refusal, TOO_LARGE, TOO_SLOW};
use crate::buffer::{Input, PADDING};
use crate::connection::{Budget, Held};
use crate::limits::{Limits, READ_BYTES, UNCOUNTED_BYTES};

/// Most bytes allocated for a body of which only the length is known.
const FIRST_BYTES: usize = READ_BYTES;
/// Bytes read before other tasks run.
const TURN_BYTES: usize = 256 << 10;
/// The buffer grows to at most this multiple of the bytes received, up to the announced length.
const BELIEVED: usize = 16;

fn claimed(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads the whole body.
///
/// # Errors
/// When the body is too long, too slow, broken off or empty, or there is no room for it. If
/// `Content-Length` is set, its length is checked before the body is read.
pub async fn collect<B: Body>(
    headers: &HeaderMap,
    body: B,
    limits: &Limits,
    budget: &Arc<Budget>,
) -> Result<Input, Refusal> {
    let max = limits.max_message_bytes;
    let claimed = claimed(headers).unwrap_or_default();
    let claimed = usize::try_from(claimed).unwrap_or(usize::MAX);
    if claimed > max {
        return Err(TOO_LARGE);
    }
    if claimed > UNCOUNTED_BYTES && !budget.has_room(claimed, claimed) {
        return Err(OVERLOADED);
    }
    let input = Input::with_room(claimed.min(FIRST_BYTES));
    let mut read = pin!(read(body, input, (claimed, max), budget));
    // Usually the body is there already, and no timer is needed.
    let input = match poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx))).await {
        Poll::Ready(input) => input?,
        Poll::Pending => {
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
) -> Result<Input, Refusal> {
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
                return Err(OVERLOADED);
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
