//! Sends what a client's opening asks for, and sets the timer that limits the wait for the answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::config::Config;
use super::observer::RequestText;
use super::opening::{Ask, Move, Opening, Step};
use super::options::RequestOptions;
use super::params;
use super::shared::Shared;
use super::stream::Exchange;
use super::timers::{Timer, Timers};
use crate::error::ConnectionError;
use crate::limits::later;
use crate::mcp::{Method, Revision};
use crate::message::encode;

/// Takes the next step of the opening; returns the revision if the connection is open now.
///
/// # Errors
/// Why the connection has failed.
pub(super) fn take(
    opening: &mut Opening,
    next: Move,
    (config, shared): (&Config, &Arc<Shared>),
    timers: &mut Timers,
    exchange: &mut Exchange,
    now: Instant,
) -> Result<Option<Revision>, ConnectionError> {
    let channel = exchange.channel.clone();
    let mut begin = |ask: Ask, wait: Duration, method: Method| {
        let registered = shared.outgoing.register();
        let key = registered.map_err(|_| ConnectionError::ClosedLocally)?;
        let timer = timers.insert(later(now, wait), Timer::Opening(key));
        let (params, meta) = (None, None);
        let request = RequestText::Sent {
            id: key.get(),
            method: method.name(),
            params,
            meta,
        };
        let observed = shared.observe(request, ask.revision, channel.as_ref());
        Ok(Step {
            key,
            timer,
            ask,
            observed: observed.map(Box::new),
        })
    };
    match next {
        Move::Open(revision, peer, ready) => {
            if let Some(ready) = ready {
                exchange.write(|out| encode::notification(out, ready.name(), None));
            }
            shared.open(revision, peer);
            return Ok(Some(revision));
        }
        Move::Fail(reason) => return Err(reason),
        Move::Probe(ask, wait) => {
            let mut step = begin(ask, wait, Method::Discover)?;
            let envelope = params::envelope(config, ask.revision);
            let (name, options) = (Method::Discover.name(), RequestOptions::default());
            let (mut frame, envelope) = (Vec::new(), envelope.as_deref());
            params::request(&mut frame, envelope, step.key, name, None, &options)
                .map_err(|why| ConnectionError::Handshake(why.to_string().into()))?;
            exchange.append(&frame);
            step.sent(now, frame.len());
            *opening = Opening::Probing(step);
        }
        Move::Initialize(ask) => {
            let mut step = begin(ask, config.limits.handshake_timeout, Method::Initialize)?;
            let params = format!(
                "{{\"protocolVersion\":\"{}\",\"capabilities\":{},\"clientInfo\":{}}}",
                ask.revision,
                config.capabilities(ask.revision),
                config.implementation,
            );
            let (key, name) = (step.key.get(), Method::Initialize.name());
            let mut frame = Vec::new();
            encode::request(&mut frame, key, name, Some(&params));
            exchange.append(&frame);
            step.sent(now, frame.len());
            *opening = Opening::Initializing(step);
        }
    }
    Ok(None)
}
