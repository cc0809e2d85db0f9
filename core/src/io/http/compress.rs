//! Long answers in fewer bytes, for who accepts gzip.

use std::io::Write;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::Response;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue, VARY,
};

use super::body::HttpBody;
use super::options::HttpOptions;

/// Shorter answers gain nothing.
const LEAST_BYTES: u64 = 1024;
/// What is compressed at a time; others have their turn between two of them.
const TURN_BYTES: usize = 64 << 10;

/// Whether an answer to a request with these headers may be compressed.
pub fn is_wanted(headers: &HeaderMap, options: &HttpOptions) -> bool {
    let all = headers.get_all(ACCEPT_ENCODING).iter();
    let mut codings = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    options.compression && codings.any(is_gzip)
}

/// RFC 9110, 12.5.3: named, and not with a weight of nothing.
fn is_gzip(coding: &str) -> bool {
    let mut parts = coding.split(';').map(str::trim);
    let named = parts
        .next()
        .is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
    let weight = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse::<f32>().ok());
    named && weight.is_none_or(|weight| weight > 0.0)
}

/// The same answer compressed, if that is worth it.
pub fn compress(mut response: Response<HttpBody>) -> Response<HttpBody> {
    if response.body_mut().compress(LEAST_BYTES) {
        let headers = response.headers_mut();
        headers.remove(CONTENT_LENGTH);
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
    response
}

/// An answer on its way through the compressor.
pub struct Gzip {
    pieces: smallvec::IntoIter<[Bytes; 1]>,
    rest: Bytes,
    /// Gone when it has ended.
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// Others have had their turn.
    rested: bool,
}

impl Gzip {
    pub fn new(pieces: smallvec::IntoIter<[Bytes; 1]>) -> Self {
        Self {
            pieces,
            rest: Bytes::new(),
            encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())),
            rested: true,
        }
    }

    /// The next bytes; none at the end.
    pub fn poll_piece(&mut self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let Some(encoder) = &mut self.encoder else {
                return Poll::Ready(None);
            };
            while self.rest.is_empty() {
                let Some(next) = self.pieces.next() else {
                    let end = self
                        .encoder
                        .take()
                        .and_then(|encoder| encoder.finish().ok());
                    return Poll::Ready(end.map(Bytes::from));
                };
                self.rest = next;
            }
            if !std::mem::replace(&mut self.rested, false) {
                self.rested = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let turn = self.rest.len().min(TURN_BYTES);
            // It writes to memory, which takes everything.
            let _ = encoder.write_all(&self.rest[..turn]);
            self.rest.advance(turn);
            let written = std::mem::take(encoder.get_mut());
            if !written.is_empty() {
                return Poll::Ready(Some(written.into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_for_who_names_it() {
        for (said, wanted) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("deflate , gzip ; q=1", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("br", false),
            ("*", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, said.parse().unwrap())]);
            let on = HttpOptions {
                compression: true,
                ..HttpOptions::default()
            };
            assert_eq!(is_wanted(&headers, &on), wanted, "{said}");
            assert!(!is_wanted(&headers, &HttpOptions::default()));
        }
    }
}
