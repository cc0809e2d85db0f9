//! `/consent`: the user's answer, and the approvals that a browser remembers.

use super::authorize::{AskedConsent, AuthorizationRequest, begin_login};
use super::browser::{APPROVALS, Cookie, PAGE, cookie};
use super::form::Form;
use super::page;
use super::reply::{ProxyReply, ProxyRequest};
use super::seal::{Purpose, digest, equal};
use super::server::ConsentProxy;

/// How long a browser remembers an approval, in seconds, and how many.
const REMEMBERED: u64 = 30 * 24 * 3600;
const MAX_APPROVALS: usize = 20;

/// The clients that the user of a browser has approved: digests of client, redirect URI and scopes, with the
/// time of each.
#[derive(Debug, Default)]
pub struct Approvals(Vec<(String, u64)>);

impl Approvals {
    pub fn of(proxy: &ConsentProxy, sealed: Option<&str>, now: u64) -> Self {
        let kept = sealed.and_then(|sealed| proxy.seal.open(Purpose::Approvals, sealed));
        let mut kept: Vec<(String, u64)> = kept.unwrap_or_default();
        kept.retain(|(_, at)| now.saturating_sub(*at) < REMEMBERED);
        Self(kept)
    }

    pub fn has(&self, request: &AuthorizationRequest) -> bool {
        can_be_remembered(request) && self.0.iter().any(|(own, _)| *own == subject(request))
    }

    /// The approvals with this one, sealed.
    fn with(
        mut self,
        proxy: &ConsentProxy,
        request: &AuthorizationRequest,
        now: u64,
    ) -> Option<String> {
        let subject = subject(request);
        self.0.retain(|(own, _)| *own != subject);
        self.0.push((subject, now));
        let first = self.0.len().saturating_sub(MAX_APPROVALS);
        proxy.seal.seal(Purpose::Approvals, &self.0.get(first..)?)
    }
}

fn subject(request: &AuthorizationRequest) -> String {
    let mut scopes = request.scopes.clone();
    scopes.sort_unstable();
    digest(&format!(
        "{} {} {}",
        request.client,
        request.redirect,
        scopes.join(" ")
    ))
}

/// Any program of this machine can pretend to be a client on this machine, so the user is asked each time
/// (RFC 8252, section 8.6).
fn can_be_remembered(request: &AuthorizationRequest) -> bool {
    request.redirect.starts_with("https:")
}

pub fn handle(proxy: &ConsentProxy, request: &ProxyRequest<'_>, now: u64) -> ProxyReply {
    let own = proxy.options.origin();
    let is_foreign = request.origin.is_some_and(|origin| origin != own)
        || request.fetch_site.is_some_and(|site| site != "same-origin");
    if is_foreign
        || !request
            .content_type
            .starts_with("application/x-www-form-urlencoded")
    {
        return page::refused("This answer does not come from the page that asked.");
    }
    let form = match Form::read(request.body) {
        Ok(form) => form,
        Err(why) => return page::refused(&why),
    };
    let sealed = form.get("request").unwrap_or_default();
    let asked: Option<AskedConsent> = proxy.seal.open(Purpose::Request, sealed);
    let Some(asked) = asked.filter(|asked| now < asked.until) else {
        return page::refused("The question is out of date. Begin the login again.");
    };
    let browser = cookie(request.cookies, PAGE).map(digest);
    if !browser.is_some_and(|browser| equal(&browser, &asked.browser)) {
        return page::refused("The question was asked in another browser. Begin the login again.");
    }
    let is_over = Cookie {
        name: PAGE,
        value: "",
        lifetime: 0,
    };
    let request_of = asked.request;
    if form.get("answer") != Some("allow") {
        let refusal = request_of.refuse(proxy, "access_denied", "the user refused");
        return refusal.setting(&is_over);
    }
    let approvals = Approvals::of(proxy, cookie(request.cookies, APPROVALS), now);
    let remembered = can_be_remembered(&request_of)
        .then(|| approvals.with(proxy, &request_of, now))
        .flatten();
    let reply = begin_login(proxy, request_of, now).setting(&is_over);
    match remembered {
        None => reply,
        Some(approvals) => reply.setting(&Cookie {
            name: APPROVALS,
            value: &approvals,
            lifetime: REMEMBERED,
        }),
    }
}
