//! What a front says of itself: what its servers offer.

use std::sync::Arc;

use super::far::Far;
use super::lane::Lane;
use super::middleware::{ChainResponse, Opening};
use super::params::{json_text, push};
use super::parts::Parts;
use super::shared::Shared;
use super::translate;
use super::unless::{all, before, unless};
use crate::connection::Handle;
use crate::correlate::CancelToken;
use crate::error::{ConnectionError, RequestError};
use crate::json::reader;
use crate::mcp::{Method, Revision};

/// The servers of a front that can be reached.
pub(super) struct Met {
    /// Each with its lane.
    fars: Vec<(Arc<Lane>, Far)>,
    /// How many servers the front has.
    of: usize,
}

/// Opens the connections to all servers at once. Of several, those that are late are left out, but not while there is none: commands that are
/// installed when they start first may all take long.
///
/// # Errors
/// If none can be reached: the parts of the first one, and why.
pub(super) async fn meet(
    shared: &Shared,
    lanes: &[Arc<Lane>],
    timers: &Handle,
) -> Result<Met, (Arc<Parts>, RequestError)> {
    let (is_only, first) = (lanes.len() == 1, CancelToken::new());
    let works = lanes.iter().map(|lane| {
        let first = &first;
        Box::pin(async move {
            let limits = &lane.parts.external.limits;
            let patience = async {
                if is_only {
                    return timers.sleep(limits.max_request_timeout).await;
                }
                timers.sleep(shared.patience).await;
                let longest = limits.request_timeout.saturating_sub(shared.patience);
                unless(timers.sleep(longest), first.cancelled()).await;
            };
            let far = open(lane, patience).await;
            if far.is_ok() {
                first.cancel(None);
            }
            far
        }) as _
    });
    let (mut fars, mut failed) = (Vec::new(), None);
    for (lane, far) in lanes.iter().zip(all(works).await) {
        match far {
            Ok(far) => fars.push((lane.clone(), far)),
            Err(error) => drop(failed.get_or_insert((lane.parts.clone(), error))),
        }
    }
    match failed.filter(|_| fars.is_empty()) {
        Some(failed) => Err(failed),
        None => Ok(Met {
            fars,
            of: lanes.len(),
        }),
    }
}

/// The connection to a server, opened if need be, unless middleware of the server refuses that.
///
/// # Errors
/// Why it cannot be opened.
pub(super) async fn open(
    lane: &Arc<Lane>,
    patience: impl Future<Output = ()>,
) -> Result<Far, RequestError> {
    if let Some(far) = lane.ready() {
        return Ok(far);
    }
    let late = CancelToken::new();
    let opening: Opening<'_> = Box::pin(async { lane.far(late.cancelled()).await.map(drop) });
    let all = lane.parts.external.middleware.iter().rev();
    let opening = all.fold(opening, |opening, one| one.connection_opens(opening));
    let opened = before(opening, patience, &late).await;
    opened
        .unwrap_or_else(|| Err(RequestError::TimedOut.into()))
        .map_err(|unopened| unopened.error)?;
    let is_lost = || RequestError::Closed(ConnectionError::ClosedByPeer);
    lane.ready().ok_or_else(is_lost)
}

impl Met {
    /// The result of `initialize`.
    pub fn initialized(&self, revision: Revision, shared: &Shared) -> ChainResponse {
        let mut out = vec![b'{'];
        push(&mut out, "protocolVersion", &json_text(revision.name()));
        self.introduce(&mut out, revision);
        let own = match self.implementation() {
            "" => &*shared.parts.config.implementation,
            own => own,
        };
        push(&mut out, "serverInfo", own);
        out.push(b'}');
        ChainResponse::new(String::from_utf8(out).unwrap_or_default())
    }

    /// The result of `server/discover`.
    pub fn discovered(&self, revision: Revision, shared: &Shared) -> ChainResponse {
        let mut out = vec![b'{'];
        let supported = shared.parts.config.revisions.to_json();
        push(&mut out, "supportedVersions", &supported);
        self.introduce(&mut out, revision);
        out.push(b'}');
        let result = String::from_utf8(out).unwrap_or_default();
        let own = match self.of {
            1 => self.implementation(),
            _ => &*shared.parts.config.implementation,
        };
        ChainResponse::new(translate::newer_result(
            &result,
            Some(Method::Discover),
            own,
        ))
    }

    /// The `Implementation` of the only server; of several, the front speaks in its own name.
    fn implementation(&self) -> &str {
        match &self.fars[..] {
            [(_, far)] if self.of == 1 => far.implementation(),
            _ => "",
        }
    }

    fn introduce(&self, out: &mut Vec<u8>, revision: Revision) {
        let offered = self.fars.iter().map(|(lane, far)| {
            let (from, to) = (far.revision.era(), revision.era());
            translate::server_capabilities(far.capabilities(), from, to, lane.is_shared())
        });
        let offered = offered.reduce(|one, other| union(&one, &other));
        let mut offered = offered.unwrap_or_else(|| "{}".to_owned());
        if self.of > 1 {
            // The lists change when a server is found, late or again. The loss of one is not told of: it mostly comes back, and
            // then the client hears that they may be others. Nothing tells a session that log messages, completions or tasks have come
            // to be offered, and a front offers nothing that it may not have (R-CHN-09): those of a late server are for sessions
            // that begin later.
            for kind in ["tools", "prompts", "resources"] {
                if self.fars.len() < self.of || reader::find(&offered, kind).is_some() {
                    let changes = format!("{{\"{kind}\":{{\"listChanged\":true}}}}");
                    offered = union(&offered, &changes);
                }
            }
        }
        push(out, "capabilities", &offered);
        let told = self.fars.iter().filter_map(|(lane, far)| {
            let instructions = far.handle().peer()?.instructions.as_deref()?;
            Some(match self.of {
                1 => instructions.to_owned(),
                _ => format!("{}: {instructions}", lane.parts.external.name()),
            })
        });
        let told: Vec<_> = told.collect();
        if !told.is_empty() {
            push(out, "instructions", &json_text(&told.join("\n\n")));
        }
    }
}

/// What either of two offers has.
fn union(one: &str, other: &str) -> String {
    let are_objects = one.starts_with('{') && other.starts_with('{');
    if !are_objects {
        return if other == "true" { other } else { one }.to_owned();
    }
    let find = |object, name: &str| reader::members(object).find(|(it, _)| it.raw() == name);
    let mut out = vec![b'{'];
    for (name, value) in reader::members(one) {
        match find(other, name.raw()) {
            Some((_, also)) => push(&mut out, name.raw(), &union(value, also)),
            None => push(&mut out, name.raw(), value),
        }
    }
    for (name, value) in reader::members(other) {
        if find(one, name.raw()).is_none() {
            push(&mut out, name.raw(), value);
        }
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}
