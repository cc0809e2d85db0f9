//! The body of a request, within its bounds.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use bytes::Buf;
use http_body::Body;
use hyper::header::{CONTENT_LENGTH, HeaderMap};

use super::answers::{BROKEN, NO_MESSAGE, TOO_LARGE, TOO_SLOW};
use super::guard::Refusal;
use crate::buffer::Input;
use crate::limits::{Limits, READ_BYTES};

/// Most room made for a body that is only announced.
const FIRST_BYTES: usize = READ_BYTES;
/// How many times what has come there is room made for, if so much was announced.
const BELIEVED: usize = 16;

fn claimed(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The whole body.
///
/// # Errors
/// It is too long, too slow, broken or empty.
pub async fn collect<B: Body>(
    headers: &HeaderMap,
    body: B,
    limits: &Limits,
) -> Result<Input, Refusal> {
    let max = limits.max_message_bytes;
    let claimed = claimed(headers).unwrap_or_default();
    let claimed = usize::try_from(claimed).unwrap_or(usize::MAX);
    if claimed > max {
        return Err(TOO_LARGE);
    }
    let input = Input::with_room(claimed.min(FIRST_BYTES));
    let mut read = pin!(read(body, input, claimed, max));
    // Most often it is there, and nothing needs a timer.
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
    claimed: usize,
    max: usize,
) -> Result<Input, Refusal> {
    let mut body = pin!(body);
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|_| BROKEN)?;
        let Ok(mut data) = frame.into_data() else {
            continue;
        };
        if data.remaining() > max - input.len() {
            return Err(TOO_LARGE);
        }
        let len = input.len() + data.remaining();
        if len > FIRST_BYTES && len <= claimed {
            // Who has sent this much may be believed that so much will follow.
            input.reserve(claimed.min(len * BELIEVED));
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            input.extend(chunk);
            let len = chunk.len();
            data.advance(len);
        }
    }
    Ok(input)
}
