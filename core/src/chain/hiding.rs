//! What the policy of a front keeps from a client: entries of lists, and changes of resources.

use super::filter::with_filter;
use super::listen;
use super::merged::list_of;
use super::middleware::{ChainRequest, ChainResponse};
use super::params::push;
use super::route::Route;
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::Method;

/// An answer, without the entries of a list that the policy hides from its client (R-PER-05).
pub(super) fn answer(route: &Route, page: ChainResponse) -> ChainResponse {
    let (registry, revision) = (&route.parts.registry, route.revision);
    let (
        Some(
            method @ (Method::ListTools
            | Method::ListPrompts
            | Method::ListResources
            | Method::ListResourceTemplates
            | Method::ListSkills),
        ),
        Some(list),
    ) = (route.method, list_of(route.method))
    else {
        return page;
    };
    if !registry.may_hide(revision) {
        return page;
    }
    let who = route
        .reply()
        .and_then(|(_, reply)| reply.principal().cloned());
    let shows = |entry: &&str| {
        let name = reader::find(entry, list.name).and_then(reader::as_str);
        name.is_some_and(|name| registry.shows(method, revision, &name, who.as_ref()))
    };
    let mut out = vec![b'{'];
    for (name, value) in reader::members(page.result()) {
        if name == list.member {
            let shown: Vec<_> = reader::elements(value).filter(shows).collect();
            push(&mut out, name.raw(), &format!("[{}]", shown.join(",")));
        } else if name == "cacheScope" && registry.filters_lists() {
            // R-CHN-16: other clients see other entries.
            push(&mut out, name.raw(), "\"private\"");
        } else {
            push(&mut out, name.raw(), value);
        }
    }
    out.push(b'}');
    ChainResponse::new(String::from_utf8(out).unwrap_or_default())
}

/// Leaves out the resources that a client may not read of those that its stream is to tell of.
///
/// # Errors
/// If the request names nothing to listen to.
pub(super) fn listening(route: &Route, request: &mut ChainRequest) -> Result<(), RequestError> {
    let policy = route.parts.registry.policy();
    let Some(policy) = policy.filter(|_| route.method == Some(Method::Listen)) else {
        return Ok(());
    };
    let may_read = |uri: &&str| {
        let uri = reader::as_str(uri);
        uri.is_some_and(|uri| policy.may_watch(&uri, request.principal()))
    };
    let mut out = vec![b'{'];
    for (name, value) in reader::members(listen::filter(request)?) {
        if name == "resourceSubscriptions" {
            let may: Vec<_> = reader::elements(value).filter(may_read).collect();
            if !may.is_empty() {
                push(&mut out, name.raw(), &format!("[{}]", may.join(",")));
            }
        } else {
            push(&mut out, name.raw(), value);
        }
    }
    out.push(b'}');
    let filter = String::from_utf8(out).unwrap_or_default();
    let params = with_filter(request.params(), &filter);
    request.set_params(&params)
}
