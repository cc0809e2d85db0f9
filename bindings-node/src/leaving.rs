//! Passes an answer to JavaScript: status and headers, then its body, one piece per demand.

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use http_body::Body;
use hyper::{Response, StatusCode};
use mcpbolt::io::http::HttpBody;
use tokio::sync::Semaphore;

use crate::inbox::{Event, Inbox};
use crate::json;
use crate::kinds::Inbound;

/// Size in bytes at which a piece ends.
const PIECE_BYTES: usize = 256 << 10;

/// Passes an answer to JavaScript, as far as `demand` allows.
pub async fn leave(number: u32, answer: Response<HttpBody>, inbox: &Inbox, demand: &Semaphore) {
    let (parts, body) = answer.into_parts();
    let mut headers: Vec<Cow<'_, str>> = Vec::with_capacity(2 * parts.headers.len() + 2);
    for (name, value) in &parts.headers {
        headers.extend([name.as_str(), value.to_str().unwrap_or_default()].map(Cow::from));
    }
    let len = body.size_hint().exact();
    // RFC 9110, 8.6
    if let Some(len) = len.filter(|_| parts.status != StatusCode::NO_CONTENT) {
        headers.extend(["content-length".into(), len.to_string().into()]);
    }
    let (status, headers) = (parts.status.as_u16(), json::text(&headers));
    inbox.push(Event::row(Inbound::Head, number, status.into(), headers));
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    loop {
        // Closed when no further piece is wanted.
        let Ok(permit) = demand.acquire().await else {
            return;
        };
        permit.forget();
        let more = gather(body.as_mut(), &mut bytes).await;
        let piece = Event::row(Inbound::Piece, number, (!more).into(), text(&mut bytes));
        inbox.push(piece);
        if !more {
            return;
        }
    }
}

/// Waits for data, and takes what is available, up to [`PIECE_BYTES`]. Returns whether more may come.
async fn gather(mut body: Pin<&mut HttpBody>, bytes: &mut Vec<u8>) -> bool {
    let before = bytes.len();
    poll_fn(|cx| {
        while bytes.len() < PIECE_BYTES {
            match body.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
                }
                Poll::Ready(_) => return Poll::Ready(false),
                Poll::Pending if bytes.len() == before => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(true)
    })
    .await
}

/// Takes the text out, except for an incomplete last character: answers of this server are UTF-8.
fn text(bytes: &mut Vec<u8>) -> String {
    let end = match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(why) if why.error_len().is_none() => why.valid_up_to(),
        Err(_) => bytes.len(),
    };
    let rest = bytes.split_off(end);
    let whole = std::mem::replace(bytes, rest);
    String::from_utf8(whole).unwrap_or_else(|why| String::from_utf8_lossy(why.as_bytes()).into())
}
