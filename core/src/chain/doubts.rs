//! A server of the stateless era that refuses a request may have become one of the handshake era. Nothing else tells: a connection over
//! HTTP outlives the server, and clients share it.

use std::time::Duration;

use super::behalf::{Behalf, ask};
use super::far::Far;
use super::lane::Lane;
use crate::connection::RequestOptions;
use crate::error::{CarrierFault, RequestError};
use crate::handler::driven::drive;
use crate::json::reader;
use crate::mcp::code::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_VERSION};
use crate::mcp::{Era, Method};

/// How long a server is not asked again.
const PAUSE: Duration = Duration::from_secs(5);

/// The error code by which servers on the official SDKs refuse a request that names no session.
const NO_SESSION: i64 = -32000;

/// If an error looks as if the server did not know the era of the connection, asks whether it still does. If that is refused in the same
/// way, the connection is closed, and the next one opens in the other era (R-ERA-07).
pub(super) fn note(lane: &Lane, far: &Far, error: &RequestError) {
    let is_of_requests = lane.parts.external.is_of_requests;
    if far.revision.era() == Era::Handshake || !is_of_requests || !is_doubtful(error) {
        return;
    }
    let Some(doubt) = far.doubt() else { return };
    let far = far.clone();
    drive(Box::pin(async move {
        if !is_of_era(&far).await {
            return far.handle().close();
        }
        let handle = far.handle().clone();
        drop(far);
        handle.sleep(PAUSE).await;
        drop(doubt);
    }));
}

/// Whether an error looks as if the server did not know the era. What an overloaded server says, or a proxy whose server is away, does not.
fn is_doubtful(error: &RequestError) -> bool {
    match error {
        RequestError::Peer(error) => matches!(
            error.code,
            UNSUPPORTED_VERSION | METHOD_NOT_FOUND | INVALID_REQUEST | INVALID_PARAMS | NO_SESSION
        ),
        RequestError::Carrier(error) => {
            error.fault == CarrierFault::Refused
                && matches!(error.status, Some(400 | 404 | 405 | 406))
        }
        _ => false,
    }
}

/// Whether the server still speaks the revision of the connection, as far as can be told.
async fn is_of_era(far: &Far) -> bool {
    let (ways, request) = ((far.handle(), far.routes()), (Method::Discover, "{}"));
    let asked = ask(ways, &Behalf::All, request, RequestOptions::default());
    let answer = match asked {
        Ok(asked) => asked.await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(answer) => {
            let result = answer.as_ref().result().unwrap_or("{}").to_owned();
            let offered = reader::find(&result, "supportedVersions");
            let mut offered = offered.into_iter().flat_map(reader::elements);
            offered.any(|one| reader::as_str(one).is_some_and(|one| one == far.revision.name()))
        }
        Err(error) => !is_doubtful(&error),
    }
}
