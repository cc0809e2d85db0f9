//! Answers that several servers give together. A server that fails, or that is late, is left out and named.

use std::collections::BTreeMap;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::value::RawValue;

use super::follow;
use super::hop::{self, Terms};
use super::list_cache::Freshness;
use super::middleware::{ChainRequest, ChainResponse, refusal};
use super::pages::{Wanted, kept_or};
use super::params::{escaped, json_text, push};
use super::parts::{Parts, no_such_method};
use super::passage::Passage;
use super::prefix::{Kind, TOO_LONG};
use super::shared::{Member, Shared};
use super::unless::{Work, all, before};
use crate::correlate::CancelToken;
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::code::{INVALID_PARAMS, METHOD_NOT_FOUND};
use crate::mcp::{Era, Method, meta};

/// `_meta` key of the servers that a list lacks, each with the reason.
const PARTIAL: &str = "dev.mcpbolt/partial";

/// A list: its member in results, the capability of servers that have it, and what its elements are called by.
pub(super) struct List {
    pub member: &'static str,
    capability: &'static str,
    kind: Kind,
    pub name: &'static str,
}

/// The list that a method asks for.
pub(super) fn list_of(method: Option<Method>) -> Option<List> {
    let (member, capability, kind, name) = match method? {
        Method::ListTools => ("tools", "tools", Kind::Name, "name"),
        Method::ListPrompts => ("prompts", "prompts", Kind::Name, "name"),
        Method::ListResources => ("resources", "resources", Kind::Uri, "uri"),
        Method::ListResourceTemplates => {
            ("resourceTemplates", "resources", Kind::Uri, "uriTemplate")
        }
        Method::ListSkills => ("skills", "extensions", Kind::Uri, "uri"),
        Method::ListTasks => ("tasks", "tasks", Kind::Task, "taskId"),
        _ => return None,
    };
    Some(List {
        member,
        capability,
        kind,
        name,
    })
}

/// A page of the lists of all servers, or of those that the cursor names.
pub(super) async fn list(
    passage: &Passage,
    list: List,
    request: &ChainRequest,
) -> Result<ChainResponse, RequestError> {
    let shared = &passage.shared;
    let mut asked = Vec::new();
    match reader::find(request.params(), "cursor") {
        None | Some("null") => {
            let mut first = request.clone();
            first.set_params(&with_cursor(request.params(), None))?;
            let members = shared.members.iter();
            asked.extend(members.map(|member| (member, first.clone())));
        }
        Some(cursor) => {
            let cursors = inner_cursors(shared, cursor);
            let why = "the cursor is not one of this list";
            for (member, cursor) in cursors.ok_or_else(|| refusal(INVALID_PARAMS, why))? {
                let mut request = request.clone();
                request.set_params(&with_cursor(request.params(), Some(&cursor)))?;
                asked.push((member, request));
            }
        }
    }
    let pages = ask(passage, list.capability, asked).await?;
    Ok(joined(shared, &list, request, &pages))
}

/// Sets the log level of all servers that have one.
pub(super) async fn set_level(
    passage: &Passage,
    request: &ChainRequest,
) -> Result<ChainResponse, RequestError> {
    for session in &*passage.route.sessions {
        follow::note_level(session, request);
    }
    let members = passage.shared.members.iter();
    let asked = members.map(|member| (member, request.clone())).collect();
    let answers = ask(passage, "logging", asked).await?;
    match answers.is_empty() {
        true => Err(no_such_method(&request.method())),
        false => Ok(ChainResponse::new("{}")),
    }
}

type Asked<'a> = (&'a Member, Result<Option<ChainResponse>, RequestError>);

/// What servers have answered.
type Answers<'a> = Vec<(&'a Member, Result<ChainResponse, RequestError>)>;

/// Asks servers at once, and waits for each for a limited time. The answers leave out servers without the capability.
///
/// # Errors
/// That of the first server, if all have failed.
async fn ask<'a>(
    passage: &Passage,
    capability: &str,
    asked: Vec<(&'a Member, ChainRequest)>,
) -> Result<Answers<'a>, RequestError> {
    let patience = passage.shared.patience;
    let works = asked
        .into_iter()
        .map(|(member, request)| -> Work<'_, Asked<'a>> {
            Box::pin(async move {
                let late = CancelToken::new();
                let work = one(passage, capability, member, request, &late);
                let answer = before(work, passage.route.timers.sleep(patience), &late).await;
                (member, answer.unwrap_or(Err(RequestError::TimedOut)))
            })
        });
    let mut answers: Answers<'a> = Vec::new();
    for (member, answer) in all(works).await {
        if let Some(answer) = answer.transpose() {
            answers.push((member, answer));
        }
    }
    if answers.iter().any(|(_, answer)| answer.is_ok()) || answers.is_empty() {
        return Ok(answers);
    }
    let (member, error) = answers.swap_remove(0);
    passage.route.goes_to(&member.parts);
    error.map(|_| Vec::new())
}

/// The answer of one server; `None` if it has nothing of the kind.
async fn one(
    passage: &Passage,
    capability: &str,
    member: &Member,
    request: ChainRequest,
    late: &CancelToken,
) -> Result<Option<ChainResponse>, RequestError> {
    let wanted = Wanted::new(passage, Some(member.index()), &request);
    let ask = async {
        let lane = passage.lane(member, &request).await?;
        // Middleware of the server sees no request for what the server is known not to have.
        if lane.ready().is_some_and(|far| !far.offers(capability)) {
            return Err(no_such_method(&request.method()));
        }
        let terms = Terms {
            capability: Some(capability),
            late: Some(late),
            ..passage.terms()
        };
        hop::pass(&lane, &passage.route, request.clone(), terms).await
    };
    match kept_or(wanted, || ask).await {
        // Another revision of the server has it.
        Err(RequestError::Peer(error)) if error.code == METHOD_NOT_FOUND => Ok(None),
        answer => answer.map(Some),
    }
}

/// The result of a list, out of the pages of servers.
fn joined(
    shared: &Shared,
    list: &List,
    request: &ChainRequest,
    pages: &Answers<'_>,
) -> ChainResponse {
    let (mut elements, mut cursors, mut partial) = (Vec::new(), vec![b'{'], vec![b'{']);
    let now = Instant::now();
    let stale = Freshness {
        until: now,
        is_public: false,
    };
    let (mut freshness, mut long) = (None::<Freshness>, Vec::new());
    for (member, page) in pages {
        let name = &escaped(member.name());
        let page = match page {
            Ok(page) => {
                let own = page.freshness().unwrap_or(stale);
                freshness = Some(freshness.map_or(own, |of| of.and(own)));
                page.result()
            }
            Err(error) => {
                push(&mut partial, name, &json_text(&why(&member.parts, error)));
                continue;
            }
        };
        let all = reader::elements(reader::find(page, list.member).unwrap_or("[]"));
        elements.extend(all.filter(|element| is_reached(shared, list, member, element)));
        let of_page = reader::find_path(page, &["_meta", TOO_LONG]).unwrap_or("[]");
        long.extend(reader::elements(of_page));
        if let Some(cursor) = reader::find(page, "nextCursor").filter(|it| it.starts_with('"')) {
            push(&mut cursors, name, cursor);
        }
    }
    let (has_more, is_partial) = (cursors.len() > 1, partial.len() > 1);
    // What lacks a part is to be asked for again.
    let freshness = freshness.filter(|_| !is_partial).unwrap_or(stale);
    let mut out = vec![b'{'];
    push(&mut out, list.member, &format!("[{}]", elements.join(",")));
    if has_more {
        cursors.push(b'}');
        push(&mut out, "nextCursor", &json_text(&BASE64.encode(cursors)));
    }
    let mut own = vec![b'{'];
    if request.revision().era() == Era::Stateless {
        push(&mut out, "resultType", "\"complete\"");
        push(&mut out, "ttlMs", &freshness.ttl_ms(now).to_string());
        let scope = match freshness.is_public {
            true => "\"public\"",
            false => "\"private\"",
        };
        push(&mut out, "cacheScope", scope);
        push(
            &mut own,
            meta::SERVER_INFO,
            &shared.parts.config.implementation,
        );
    }
    if !long.is_empty() {
        push(&mut own, TOO_LONG, &format!("[{}]", long.join(",")));
    }
    if is_partial {
        partial.push(b'}');
        push(&mut own, PARTIAL, &String::from_utf8_lossy(&partial));
    }
    if own.len() > 1 {
        own.push(b'}');
        push(&mut out, "_meta", &String::from_utf8_lossy(&own));
    }
    out.push(b'}');
    ChainResponse::new(String::from_utf8(out).unwrap_or_default()).with(Some(freshness))
}

/// Whether a request for the element would reach the server that lists it: the prefix of another one may hide it.
fn is_reached(shared: &Shared, list: &List, member: &Member, element: &str) -> bool {
    let name = reader::find(element, list.name).and_then(reader::as_str);
    let owner = name.and_then(|name| shared.owner(list.kind, &name));
    member.parts.prefix.is_some() || owner.is_none_or(|owner| owner.index() == member.index())
}

/// Why a server is left out.
fn why(parts: &Parts, error: &RequestError) -> String {
    match error {
        RequestError::Peer(error) => {
            format!("the server {:?}: {}", parts.external.name(), error.message)
        }
        error => parts.worded(error, Era::Stateless).1,
    }
}

/// The servers that a cursor names, each with its own cursor, raw JSON: not each is a text.
fn inner_cursors<'a>(shared: &'a Shared, cursor: &str) -> Option<Vec<(&'a Member, String)>> {
    let cursors = BASE64.decode(&*reader::as_str(cursor)?).ok()?;
    let cursors: BTreeMap<String, &RawValue> = serde_json::from_slice(&cursors).ok()?;
    let own = |member: &'a Member| {
        let cursor = cursors.get(member.name())?.get();
        cursor.starts_with('"').then(|| (member, cursor.to_owned()))
    };
    let found: Vec<_> = shared.members.iter().filter_map(own).collect();
    (found.len() == cursors.len() && !found.is_empty()).then_some(found)
}

/// Params with another cursor, or with none.
fn with_cursor(params: &str, cursor: Option<&str>) -> String {
    let mut out = vec![b'{'];
    for (name, value) in reader::members(params) {
        match cursor {
            _ if name != "cursor" => push(&mut out, name.raw(), value),
            Some(cursor) => push(&mut out, name.raw(), cursor),
            None => {}
        }
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}
