//! What is redeemed once, and replies whose client has left.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::reply::{ProxyReply, ProxyRequest};
use super::used::Marks;

/// How long a reply is kept whose client has left, in seconds.
const KEPT_SECONDS: u64 = 600;

/// Most replies that are kept. Beyond that, the one kept for longest goes.
const MAX_KEPT: usize = 256;

/// Codes or refresh tokens, by digest. Each is redeemed once. A client that leaves before the reply gets that reply when it
/// asks again, once: its login would be over otherwise, since the provider's code or refresh token is gone, too.
#[derive(Debug, Default)]
pub struct Redemptions {
    used: Marks,
    open: Mutex<Open>,
}

/// `None` while the provider is being asked, then the tokens, and until when they are kept.
type Open = HashMap<String, Option<(u64, Issued)>>;

/// Tokens that were issued. `Debug` omits them.
#[derive(Clone)]
pub struct Issued {
    /// The reply without `expires_in`.
    pub body: Value,
    /// The scopes of the access token.
    pub scopes: Vec<String>,
    /// When the access token ends.
    pub end: u64,
}

impl Issued {
    /// The reply at `now`.
    fn reply(&self, now: u64) -> ProxyReply {
        let mut body = self.body.clone();
        body["expires_in"] = self.end.saturating_sub(now).into();
        ProxyReply::json(200, &body)
    }

    fn is_for(&self, scopes: &[String]) -> bool {
        self.scopes.len() == scopes.len() && scopes.iter().all(|it| self.scopes.contains(it))
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Issued {{ end: {}, .. }}", self.end)
    }
}

/// What becomes of a request with a code or a refresh token.
pub enum Begun<'a> {
    /// It is redeemed now.
    Now(Redemption<'a>),
    /// The reply to an earlier request, whose client had left.
    Before(ProxyReply),
    /// An earlier request, whose client had left, asked for other scopes. Its reply stays.
    OtherScopes,
    /// An earlier request is being answered.
    Busy,
    /// Its time is over.
    Ended,
    /// It was redeemed.
    Used,
}

impl Redemptions {
    /// Begins to redeem for these scopes what is good until a time. A kept reply outlasts that time.
    pub fn begin(&self, what: String, scopes: &[String], until: u64, now: u64) -> Begun<'_> {
        let mut open = self.open();
        match open.remove(&what) {
            Some(None) => {
                open.insert(what, None);
                Begun::Busy
            }
            Some(Some((end, issued))) if now < end => match issued.is_for(scopes) {
                true => Begun::Before(issued.reply(now)),
                false => {
                    open.insert(what, Some((end, issued)));
                    Begun::OtherScopes
                }
            },
            _ if until <= now => Begun::Ended,
            _ if !self.used.mark(&what, until, now) => Begun::Used,
            _ => {
                open.insert(what.clone(), None);
                let all = self;
                Begun::Now(Redemption { all, what })
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Every critical section leaves the map whole, also when it panics.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A code or a refresh token with which the provider is being asked.
pub struct Redemption<'a> {
    all: &'a Redemptions,
    what: String,
}

impl Redemption<'_> {
    /// Ends with these tokens, which are kept if the client has left.
    pub fn end(self, issued: Issued, request: &ProxyRequest<'_>, now: u64) -> ProxyReply {
        let reply = issued.reply(now);
        let mut open = self.all.open();
        if request.has_left() {
            open.retain(|_, kept| kept.as_ref().is_none_or(|(end, _)| now < *end));
            let kept = open
                .iter()
                .filter_map(|(what, kept)| Some((kept.as_ref()?.0, what)));
            let oldest = kept.clone().min().map(|(_, what)| what.clone());
            if let Some(oldest) = oldest.filter(|_| kept.count() >= MAX_KEPT) {
                open.remove(&oldest);
            }
            let until = now.saturating_add(KEPT_SECONDS);
            open.insert(self.what.clone(), Some((until, issued)));
        }
        drop(open);
        reply
    }

    /// Ends without a reply of the provider: what was to be redeemed stays good.
    pub fn undo(self) {
        self.all.used.forget(&self.what);
    }
}

impl Drop for Redemption<'_> {
    fn drop(&mut self) {
        let mut open = self.all.open();
        if let Some(None) = open.get(&self.what) {
            open.remove(&self.what);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use serde_json::json;

    use super::*;

    #[test]
    fn replies_are_kept_for_a_while_up_to_a_number() {
        let all = Redemptions::default();
        let left = AtomicBool::new(true);
        let mut request = ProxyRequest::new("POST", "/token", "");
        request.left = Some(&left);
        let redeem = |number: usize, now| {
            let Begun::Now(redemption) = all.begin(number.to_string(), &[], u64::MAX, now) else {
                panic!("{number} was redeemed")
            };
            let issued = Issued {
                body: json!({"number": number}),
                scopes: Vec::new(),
                end: 1000,
            };
            redemption.end(issued, &request, now);
        };
        (0..=MAX_KEPT).for_each(|number| redeem(number, number as u64));
        // Also after the end of what was redeemed.
        let kept = |number: usize, now| match all.begin(number.to_string(), &[], 0, now) {
            Begun::Before(reply) => {
                let body: Value = serde_json::from_str(&reply.body).unwrap();
                body == json!({"number": number, "expires_in": 1000 - now})
            }
            _ => false,
        };
        assert!(!kept(0, 300), "one too many");
        assert!(kept(1, 300) && !kept(1, 300), "once");
        assert!(kept(2, 2 + KEPT_SECONDS - 1) && !kept(3, 3 + KEPT_SECONDS));
        assert_eq!(all.open().len(), MAX_KEPT - 3);
    }
}
