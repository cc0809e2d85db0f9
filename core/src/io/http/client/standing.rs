//! The stream of messages that belong to no request, in the handshake era (R-HTP-11).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::answer::{Kind, kind};
use super::carrier::Carrier;
use super::events::Events;
use super::exchange::Outcome;
use super::link::refused;

/// Reads the stream as long as the session lasts; returns at once if the server has none.
pub async fn stand(carrier: Arc<Carrier>) -> Outcome {
    let session = carrier.session();
    // No request waits for an event that is too long.
    let mut events = Events::new(carrier.max_len()).skipping();
    let (mut failures, mut stood) = (0, false);
    loop {
        let mut asked = Duration::ZERO;
        match carrier.get(&session, events.position()).await {
            Err(_) => failures += 1,
            Ok(response) => match response.status().as_u16() {
                200..300 if kind(&response) == Kind::Events => {
                    stood = true;
                    events.resume();
                    let (came, _) = carrier.read(&mut events, response, None).await;
                    failures = if came { 0 } else { failures + 1 };
                }
                404 if stood && session.id.is_some() => {
                    return Outcome::Gone(session.generation, None);
                }
                429 | 500.. => {
                    failures += 1;
                    asked = carrier.options.left_alone(&refused(&response, ""));
                }
                // 405: the server has no such stream. 404 at the first attempt: it does not route GET
                // at all, which says nothing about the session.
                _ => return Outcome::Over,
            },
        }
        sleep(events.wait(failures, &carrier.options.resume).max(asked)).await;
    }
}
