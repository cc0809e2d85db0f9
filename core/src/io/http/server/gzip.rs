//! Compresses long answers for clients that accept gzip.

use std::io::Write;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};

use super::media::has_weight;
use super::options::HttpOptions;

/// Bytes compressed per poll; other tasks run between two polls.
const TURN_BYTES: usize = 64 << 10;

/// Whether the answer to a request with these headers may be compressed.
pub fn is_wanted(headers: &HeaderMap, options: &HttpOptions) -> bool {
    let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|all| all.split(',').any(is_gzip));
    options.compression && headers.get_all(ACCEPT_ENCODING).iter().any(accepts)
}

/// Whether a coding is gzip, with a weight above zero (RFC 9110, 12.5.3).
fn is_gzip(coding: &str) -> bool {
    let name = coding.split(';').next().unwrap_or_default().trim();
    name.eq_ignore_ascii_case("gzip") && has_weight(coding)
}

/// An answer being compressed.
pub struct Gzip {
    pieces: smallvec::IntoIter<[Bytes; 1]>,
    rest: Bytes,
    /// `None` when it has ended.
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// Whether other tasks have had their turn since the last piece.
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

    /// The next bytes; `None` at the end.
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
            // Writing to memory cannot fail.
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
    fn gzip_is_for_clients_that_name_it() {
        for (said, wanted) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("deflate , gzip ; q=1", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("gzip;Q=0", false),
            ("GZIP; Q=0.001", true),
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
