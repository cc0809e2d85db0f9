//! A stream of changes of a client of the stateless era, from several servers of either era.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::time::Instant;

use super::attempts::{LONGEST_WAIT, wait_after};
use super::filter::{is_list, with_filter};
use super::follow;
use super::held::Part;
use super::hop;
use super::listen::{self, MAX_SUBSCRIPTIONS};
use super::middleware::{ChainRequest, ChainResponse};
use super::params::push;
use super::passage::Passage;
use super::prefix::Kind;
use super::shared::{Member, Shared};
use super::stream;
use super::unless::{all, unless};
use crate::error::RequestError;
use crate::json::reader;

/// Serves a stream. It is acknowledged when the stream of each server is open or has failed, or when the front's patience is over: what
/// comes before is told after the acknowledgement. It stays open when a server is lost: that of the server is opened again.
pub(super) async fn listen(
    passage: &Passage,
    request: &ChainRequest,
) -> Result<ChainResponse, RequestError> {
    let (shared, route) = (&passage.shared, &passage.route);
    let filter = listen::filter(request)?;
    let (mut works, mut parts) = (Vec::new(), Vec::new());
    for member in &shared.members {
        let filter = part(shared, filter, member);
        if filter != "{}" {
            let mut request = request.clone();
            request.set_params(&with_filter(request.params(), &filter))?;
            works.push(Box::pin(keep(passage, member, request)) as _);
            parts.push(Part {
                server: member.index(),
                filter,
                is_awaited: true,
            });
        }
    }
    let opens = route.hold(parts);
    let mut works = pin!(all(works.into_iter()));
    let mut over = pin!(stream::over(route));
    let mut is_served = true;
    let mut served = pin!(poll_fn(|cx| {
        is_served = is_served && works.as_mut().poll(cx).is_pending();
        over.as_mut().poll(cx)
    }));
    let opening = unless(opens.cancelled(), route.timers.sleep(shared.patience));
    let ended = unless(served.as_mut(), async {
        let _ = opening.await;
    })
    .await;
    let is_whole = stream::acknowledge(&shared.parts, route, &route.take_granted()).await;
    match ended {
        Some(ended) => ended?,
        None if is_whole => served.await?,
        None => {}
    }
    stream::ended_well(route)
}

/// The part of a filter that a server sees to.
fn part(shared: &Shared, filter: &str, member: &Member) -> String {
    let is_own = |kind, outer: &str| {
        let owner = reader::as_str(outer).and_then(|outer| shared.owner(kind, &outer));
        owner.is_some_and(|owner| member.index() == owner.index())
    };
    let mut out = vec![b'{'];
    for (name, value) in reader::members(filter) {
        let kind = match () {
            () if name == "resourceSubscriptions" => Kind::Uri,
            () if name == "taskIds" => Kind::Task,
            () => {
                if value == "true" && is_list(name) {
                    push(&mut out, name.raw(), value);
                }
                continue;
            }
        };
        let own = reader::elements(value).take(MAX_SUBSCRIPTIONS);
        let own: Vec<_> = own.filter(|outer| is_own(kind, outer)).collect();
        if !own.is_empty() {
            push(&mut out, name.raw(), &format!("[{}]", own.join(",")));
        }
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// The request without resources and tasks; `None` if it has none, or nothing else.
fn lists_alone(request: &ChainRequest) -> Option<ChainRequest> {
    let filter = listen::filter(request).ok()?;
    let (lists, others): (Vec<_>, Vec<_>) =
        reader::members(filter).partition(|(name, _)| is_list(*name));
    if lists.is_empty() || others.is_empty() {
        return None;
    }
    let mut out = vec![b'{'];
    for (name, value) in lists {
        push(&mut out, name.raw(), value);
    }
    out.push(b'}');
    let filter = String::from_utf8(out).ok()?;
    let mut request = request.clone();
    request
        .set_params(&with_filter(request.params(), &filter))
        .ok()?;
    Some(request)
}

/// Keeps the stream of one server open, until the server refuses it. What it refuses may be one of the resources: then it is
/// asked once more, for the lists alone.
async fn keep(passage: &Passage, member: &Member, mut request: ChainRequest) {
    let (mut waits, mut is_late) = (0, false);
    loop {
        let begun = Instant::now();
        let ended = async {
            let lane = passage.lane(member, &request).await?;
            if is_late {
                passage.route.expect_late(&member.parts);
            }
            hop::pass(&lane, &passage.route, request.clone(), passage.terms()).await
        };
        if let Err(error) = ended.await
            && follow::is_final(&error)
        {
            match lists_alone(&request) {
                Some(lists) => (request, is_late) = (lists, true),
                None => {
                    passage.route.settle(&member.parts, Some("{}"));
                    return follow::log_refusal(&member.parts, &error);
                }
            }
            continue;
        }
        passage.route.settle(&member.parts, None);
        // Without the client, every request ends at once, and so does every wait.
        if passage.route.is_cancelled() || passage.route.timers.is_closed() {
            return;
        }
        if begun.elapsed() >= LONGEST_WAIT {
            waits = 0;
        }
        passage.route.timers.sleep(wait_after(waits)).await;
        (waits, is_late) = (waits.saturating_add(1), true);
    }
}
