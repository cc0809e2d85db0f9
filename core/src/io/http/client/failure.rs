//! What failed requests and error responses mean.

use std::error::Error;
use std::io;
use std::time::Duration;

use hyper::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use hyper_util::client::legacy;

use super::connections::HttpResponse;
use crate::error::{CarrierError, CarrierFault};

/// Maximum number of characters of a response body that an error quotes.
const WHY_CHARS: usize = 200;

/// Why there is no response.
pub struct SendFailure {
    pub error: CarrierError,
    /// Whether the server has told that it has not looked at the request, which may be sent again (RFC 9113, section 8.7).
    pub is_unseen: bool,
}

impl From<legacy::Error> for SendFailure {
    fn from(error: legacy::Error) -> Self {
        let mut source: Option<&dyn Error> = Some(&error);
        let mut is_unseen = false;
        while let Some(inner) = source {
            is_unseen |= inner.downcast_ref().is_some_and(is_refused_unseen);
            source = inner.source();
        }
        Self {
            is_unseen,
            error: failure(&error, error.is_connect()),
        }
    }
}

impl From<CarrierError> for SendFailure {
    fn from(error: CarrierError) -> Self {
        Self {
            error,
            is_unseen: false,
        }
    }
}

impl From<SendFailure> for CarrierError {
    fn from(unsent: SendFailure) -> Self {
        unsent.error
    }
}

/// Whether a server that ends a connection of HTTP/2 in good order, or refuses one request, has not looked at it.
fn is_refused_unseen(error: &h2::Error) -> bool {
    let reason = error.reason();
    let is_shutdown = error.is_go_away() && reason == Some(h2::Reason::NO_ERROR);
    let is_refused = error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM);
    error.is_remote() && (is_shutdown || is_refused)
}

/// Why a body broke off.
pub fn broken(error: hyper::Error) -> CarrierError {
    failure(&error, false)
}

/// A server said nothing for that long.
pub fn silent(limit: Duration) -> CarrierError {
    let why = format!("the server said nothing for {limit:?}");
    CarrierError::new(CarrierFault::TimedOut, why)
}

fn failure(error: &(dyn Error + 'static), connecting: bool) -> CarrierError {
    // The innermost cause says most.
    let mut source = error;
    let (mut tls, mut timed_out) = (false, false);
    while let Some(inner) = cause(source) {
        source = inner;
        tls |= source.is::<rustls::Error>();
        let io = source.downcast_ref::<io::Error>();
        timed_out |= io.is_some_and(|it| it.kind() == io::ErrorKind::TimedOut);
    }
    let (fault, what) = match (connecting, timed_out, tls) {
        (_, _, true) => (CarrierFault::Tls, "no secure connection"),
        (true, true, _) => (
            CarrierFault::TimedOut,
            "the server took too long to connect",
        ),
        (true, false, _) => (CarrierFault::Unreachable, "the server cannot be reached"),
        (false, true, _) => (
            CarrierFault::TimedOut,
            "the server said nothing for too long",
        ),
        (false, false, _) => (CarrierFault::Broken, "the connection broke off"),
    };
    CarrierError::new(fault, format!("{what}: {source}"))
}

/// The cause of an error. `source` of an I/O error skips the error inside it, so that one is returned
/// first.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let io = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match io {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// The error for a response with an error status; quotes its body if it is not empty.
pub fn refused(response: &HttpResponse, body: &str) -> CarrierError {
    let status = response.status();
    let authenticate = response.headers().get(WWW_AUTHENTICATE);
    let authenticate = authenticate.and_then(|value| value.to_str().ok());
    let said: String = body
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(WHY_CHARS)
        .collect();
    let why = match said.trim() {
        "" => format!("the server answered with status {status}"),
        said => format!("the server answered with status {status}: {said}"),
    };
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    CarrierError {
        status: Some(status.as_u16()),
        retry_after: retry_after.map(Duration::from_secs),
        authenticate: authenticate.map(Box::from),
        ..CarrierError::new(CarrierFault::Refused, why)
    }
}
