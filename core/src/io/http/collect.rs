//! The body of a request, within its bounds.

use std::future::poll_fn;
use std::pin::pin;

use bytes::Buf;
use http_body::Body;
use hyper::header::{CONTENT_LENGTH, HeaderMap};

use super::answers::{BROKEN, NO_MESSAGE, TOO_LARGE, TOO_SLOW};
use super::guard::Refusal;
use crate::buffer::Input;
use crate::limits::Limits;

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
    if claimed(headers).is_some_and(|len| len > max as u64) {
        return Err(TOO_LARGE);
    }
    let input = tokio::time::timeout(limits.stall_timeout, read(body, max)).await;
    let input = input.unwrap_or(Err(TOO_SLOW))?;
    match input.is_empty() {
        true => Err(NO_MESSAGE),
        false => Ok(input),
    }
}

async fn read<B: Body>(body: B, max: usize) -> Result<Input, Refusal> {
    let mut body = pin!(body);
    let mut input = Input::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|_| BROKEN)?;
        let Ok(mut data) = frame.into_data() else {
            continue;
        };
        if data.remaining() > max - input.len() {
            return Err(TOO_LARGE);
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
