//! What a client asks for that lasts as long as its session: resources that it subscribes to, and its log level.
//!
//! A process finds it in the messages of the client, notes it on the store once it is granted, and repeats the messages where
//! it accepts the session of another process.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::shared_sessions::SharedSessions;
use crate::buffer::Input;
use crate::limits::{MAX_SUBSCRIPTION_BYTES, MAX_SUBSCRIPTIONS};
use crate::mcp::Method;
use crate::store::{BlobVersion, StoreFault};

/// Longest message that is searched, in bytes: one with the longest URI that a server takes.
const MAX_MESSAGE_BYTES: usize = MAX_SUBSCRIPTION_BYTES + 1024;
/// Parts of the names of the methods. No client writes letters as escapes there, as some do with slashes.
static PARTS: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| ["ubscribe", "etLevel"].map(Finder::new));

/// Resources with whether they are wanted, and a log level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wishes {
    level: Option<Box<str>>,
    uris: BTreeMap<Box<str>, bool>,
}

/// What the store has of the wishes of one session, as far as this process knows. Its lock is held while the store is asked, so
/// that no answer is older than what is known.
#[derive(Debug, Default)]
pub struct Noted {
    /// What the store has not taken yet.
    pub untold: Wishes,
    /// The version whose wishes this process has taken in.
    pub version: Option<BlobVersion>,
    /// What has effect in this process.
    pub granted: Granted,
}

/// The wishes that have effect in a process. Of resources it has the hashes, since the session has their URIs.
#[derive(Debug, Default)]
pub struct Granted {
    level: Option<Box<str>>,
    uris: HashSet<u64>,
    hashes: RandomState,
}

impl Granted {
    /// Adds wishes that have effect now; what is one too many is asked for again, which does no harm.
    pub fn add(&mut self, wishes: &Wishes) {
        for (uri, is_wanted) in &wishes.uris {
            let uri = self.hashes.hash_one(uri);
            match is_wanted {
                true => self.uris.len() < MAX_SUBSCRIPTIONS && self.uris.insert(uri),
                false => self.uris.remove(&uri),
            };
        }
        self.level = wishes.level.clone().or(self.level.take());
    }

    /// Leaves out of wishes what has effect already.
    pub fn retain_new(&self, wishes: &mut Wishes) {
        let has = |uri: &str| self.uris.contains(&self.hashes.hash_one(uri));
        wishes.uris.retain(|uri, is_wanted| has(uri) != *is_wanted);
        if wishes.level == self.level {
            wishes.level = None;
        }
    }
}

impl Noted {
    /// Tells the store. Returns whether there is nothing left to tell: the store has it, or will never take it.
    pub async fn tell(&mut self, shared: &SharedSessions, id: &str) -> bool {
        if self.untold.is_empty() {
            return true;
        }
        match shared.note(id, &self.untold).await {
            Ok(Some((before, after))) if self.version == before => self.version = Some(after),
            // Another process has told something that is not known here yet.
            Ok(_) => {}
            Err(why) => {
                if why.fault() != StoreFault::Misuse {
                    event!(warn, %why, "other processes do not know what a session subscribes to while the store is away");
                    return false;
                }
                event!(warn, %why, "other processes do not know what a session subscribes to: the store never takes it");
            }
        }
        self.untold = Wishes::default();
        true
    }
}

/// A message of a client.
#[derive(Deserialize)]
struct Asked {
    method: Option<Box<str>>,
    params: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Params {
    uri: Option<Box<str>>,
    level: Option<Box<str>>,
}

impl Wishes {
    /// The wishes in a message or a batch; `None` if there are none, as in nearly every one.
    pub fn of(body: &Input) -> Option<Box<Self>> {
        let text = body.filled();
        if text.len() > MAX_MESSAGE_BYTES || PARTS.iter().all(|part| part.find(text).is_none()) {
            return None;
        }
        let asked = serde_json::from_slice(text).map(|one| vec![one]);
        let asked: Vec<Asked> = asked.or_else(|_| serde_json::from_slice(text)).ok()?;
        let mut wishes = Self::default();
        asked.into_iter().for_each(|asked| wishes.add(asked));
        (!wishes.is_empty()).then(|| Box::new(wishes))
    }

    fn add(&mut self, asked: Asked) {
        let params = |params: Option<Box<RawValue>>| -> Params {
            let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
            params.unwrap_or_default()
        };
        match asked.method.as_deref().and_then(Method::parse) {
            Some(method @ (Method::Subscribe | Method::Unsubscribe)) => {
                let uri = params(asked.params).uri;
                self.uris
                    .extend(uri.map(|uri| (uri, method == Method::Subscribe)));
            }
            Some(Method::SetLevel) => {
                self.level = params(asked.params).level.or(self.level.take());
            }
            _ => {}
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what the client wants later. Resources beyond the bounds of one session are left out.
    pub fn merge(&mut self, later: Self) {
        let mut bytes: usize = self.uris.keys().map(|uri| uri.len()).sum();
        for (uri, is_wanted) in later.uris {
            let has_room =
                self.uris.len() < MAX_SUBSCRIPTIONS && bytes + uri.len() <= MAX_SUBSCRIPTION_BYTES;
            if let Some(known) = self.uris.get_mut(&uri) {
                *known = is_wanted;
            } else if has_room {
                bytes += uri.len();
                self.uris.insert(uri, is_wanted);
            }
        }
        self.level = later.level.or(self.level.take());
    }

    /// Forgets what is not wanted any more, once nobody has to be told so.
    pub fn settle(&mut self) {
        self.uris.retain(|_, is_wanted| *is_wanted);
    }

    /// Messages by which a client asks for the same.
    pub fn requests(&self) -> impl Iterator<Item = Input> {
        let level = self
            .level
            .iter()
            .map(|level| (Method::SetLevel, json!({ "level": level })));
        let uris = self.uris.iter().map(|(uri, is_wanted)| {
            let method = match is_wanted {
                true => Method::Subscribe,
                false => Method::Unsubscribe,
            };
            (method, json!({ "uri": uri }))
        });
        level.chain(uris).enumerate().map(|(id, (method, params))| {
            let message =
                json!({"jsonrpc": "2.0", "id": id, "method": method.name(), "params": params});
            let mut body = Input::new();
            body.extend(message.to_string().as_bytes());
            body
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: &str) -> Option<Wishes> {
        let mut body = Input::new();
        body.extend(message.as_bytes());
        Wishes::of(&body).map(|wishes| *wishes)
    }

    fn wishes(level: Option<&str>, uris: &[(&str, bool)]) -> Wishes {
        let uris = uris
            .iter()
            .map(|(uri, is_wanted)| (Box::from(*uri), *is_wanted));
        Wishes {
            level: level.map(Box::from),
            uris: uris.collect(),
        }
    }

    /// R-BAT-01: a batch may bring several.
    #[test]
    fn wishes_are_found_in_messages_and_batches() {
        let subscribe =
            r#"{"id":1,"method":"resources\/subscribe","params":{"uri":"a:1","_meta":{}}}"#;
        let unsubscribe = r#"{"id":2,"method":"resources/unsubscribe","params":{"uri":"a:2"}}"#;
        let level = r#"{"id":3,"method":"logging/setLevel","params":{"level":"error"}}"#;
        assert_eq!(of(subscribe), Some(wishes(None, &[("a:1", true)])));
        assert_eq!(of(level), Some(wishes(Some("error"), &[])));
        let call = r#"{"id":4,"method":"tools/call","params":{"name":"subscribe"}}"#;
        let batch = format!("[{subscribe},{call},{unsubscribe},{level}]");
        let all = wishes(Some("error"), &[("a:1", true), ("a:2", false)]);
        assert_eq!(of(&batch), Some(all));
        for none in [
            call,
            r#"{"id":1,"result":{"method":"resources/subscribe"}}"#,
            r#"{"id":1,"method":"resources/subscribe","params":[7]}"#,
            "[\"ubscribe\"]",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn a_client_wants_what_it_asked_for_last() {
        let mut all = wishes(Some("error"), &[("a:1", true), ("a:2", true)]);
        all.merge(wishes(None, &[("a:1", false), ("a:3", true)]));
        let now = [("a:1", false), ("a:2", true), ("a:3", true)];
        assert_eq!(all, wishes(Some("error"), &now));
        let mut again = Wishes::default();
        for body in all.requests() {
            again.merge(*Wishes::of(&body).unwrap());
        }
        assert_eq!(again, all);
        all.settle();
        assert_eq!(all, wishes(Some("error"), &now[1..]));
        let kept: Wishes = serde_json::from_str(&serde_json::to_string(&all).unwrap()).unwrap();
        assert_eq!(kept, all);
    }

    #[test]
    fn what_has_effect_is_not_asked_for_again() {
        let mut granted = Granted::default();
        granted.add(&wishes(Some("error"), &[("a:1", true), ("a:2", true)]));
        granted.add(&wishes(None, &[("a:2", false)]));
        let left = |level, uris: &[_]| {
            let mut wishes = wishes(level, uris);
            granted.retain_new(&mut wishes);
            wishes
        };
        let all = [("a:1", true), ("a:2", true), ("a:3", false)];
        assert_eq!(left(Some("error"), &all), wishes(None, &all[1..2]));
        let other = [("a:1", false)];
        assert_eq!(left(Some("debug"), &other), wishes(Some("debug"), &other));
    }

    #[test]
    fn the_wishes_of_a_session_are_bounded() {
        let mut all = Wishes::default();
        for n in 0..=MAX_SUBSCRIPTIONS {
            all.merge(wishes(None, &[(&n.to_string(), true)]));
        }
        assert_eq!(all.uris.len(), MAX_SUBSCRIPTIONS);
        all.merge(wishes(Some("debug"), &[("0", false)]));
        assert_eq!(
            (&all.level.as_deref(), all.uris["0"]),
            (&Some("debug"), false)
        );
        let mut long = wishes(None, &[("a", true)]);
        long.merge(wishes(None, &[(&"b".repeat(MAX_SUBSCRIPTION_BYTES), true)]));
        assert_eq!(long, wishes(None, &[("a", true)]));
        let uri = |len| {
            format!(
                r#"{{"method":"resources/subscribe","params":{{"uri":"{}"}}}}"#,
                "c".repeat(len)
            )
        };
        assert!(of(&uri(MAX_SUBSCRIPTION_BYTES)).is_some());
        assert!(of(&uri(MAX_MESSAGE_BYTES)).is_none());
    }
}
