//! Signs the state that a client holds for the server, and checks it when it comes back: the server
//! signed it, it is not expired, and it belongs to the same request (R-MRT-08, R-MRT-09).
//!
//! ```text
//!   base64(payload) "." base64(HMAC-SHA256(key, context, payload))
//! ```
//!
//! The payload is signed, not encrypted; it contains only what the client itself sent.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use hmac_sha256::{HMAC, Hash};
use serde_json::Value;

use crate::digest::hex;
use crate::server::replay_guard::ReplayGuard;
use crate::store::{SharedStore, StoreError};

/// Lifetime of a state, during which the user can answer.
const LIFETIME: Duration = Duration::from_secs(3600);

/// The key that signs the state which clients hold between the rounds of a call.
#[derive(Clone)]
pub struct StateSigner {
    key: [u8; 32],
    /// Takes the place of a random key once the processes of the server share one; `None` if the program has given a key.
    shared: Option<Arc<OnceLock<[u8; 32]>>>,
    uses: StateUses,
}

/// How often a state is accepted.
#[derive(Clone)]
pub(in crate::server) enum StateUses {
    Any,
    /// Once by this process.
    Once(Arc<ReplayGuard>),
    /// Once by all processes with this store. Who opens a state has to spend it.
    OnceAnywhere(Arc<dyn SharedStore>),
}

/// A state that was opened.
#[derive(Debug)]
pub(in crate::server) struct Opened {
    pub payload: String,
    /// What is to be spent before the payload is used, if all processes together accept the state once.
    pub unspent: Option<Unspent>,
}

/// A state that other processes may have accepted.
#[derive(Clone, Debug)]
pub(in crate::server) struct Unspent {
    store: Arc<dyn SharedStore>,
    name: String,
    keep: Duration,
}

impl Unspent {
    /// Marks the state as used. Returns whether it was not used before.
    ///
    /// # Errors
    /// The store is away: the state may have been used.
    pub async fn spend(&self) -> Result<bool, StoreError> {
        self.store.once(&self.name, self.keep).await
    }
}

impl std::fmt::Debug for StateSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateSigner(..)")
    }
}

impl StateSigner {
    /// Uses a secret key, the same in all processes of one server.
    pub fn new(key: [u8; 32]) -> Self {
        Self {
            key,
            shared: None,
            uses: StateUses::Any,
        }
    }

    /// Accepts each sealed state only once (R-MRT-09).
    #[must_use]
    pub fn single_use(mut self) -> Self {
        self.uses = StateUses::Once(Arc::default());
        self
    }

    /// Accepts each sealed state so often.
    pub(in crate::server) fn accepting(mut self, uses: StateUses) -> Self {
        self.uses = uses;
        self
    }

    /// Creates a random key, in place of which a [shared](Self::share) one is used; `None` when the system provides no
    /// randomness.
    pub fn random() -> Option<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).ok()?;
        Some(Self {
            shared: Some(Arc::default()),
            ..Self::new(key)
        })
    }

    /// Uses a key that all processes of the server have, unless the program has given one, or another is shared already. A state that
    /// is accepted once by this process stays its own: others would accept it once more.
    pub fn share(&self, key: [u8; 32]) {
        let is_own = matches!(self.uses, StateUses::Once(_));
        if let Some(shared) = self.shared.as_ref().filter(|_| !is_own) {
            let _ = shared.set(key);
        }
    }

    fn key(&self) -> &[u8; 32] {
        let shared = self.shared.as_ref().and_then(|shared| shared.get());
        shared.unwrap_or(&self.key)
    }

    /// Signs a payload for the request that `context` identifies.
    pub(in crate::server) fn close(&self, context: &[u8], payload: &str) -> String {
        let end = now() + LIFETIME.as_secs();
        if matches!(self.uses, StateUses::Any) {
            return self.close_until(context, payload, end);
        }
        // The nonce makes two states with the same payload distinct.
        let mut nonce = [0; 16];
        // Without randomness the two are equal, and the second is refused.
        let _ = getrandom::fill(&mut nonce);
        let nonce = BASE64.encode(nonce);
        self.close_until(context, &format!("{nonce}:{payload}"), end)
    }

    fn mac(&self, context: &[u8], payload: &[u8]) -> HMAC {
        let mut mac = HMAC::new(self.key());
        mac.update(context);
        mac.update(payload);
        mac
    }

    fn close_until(&self, context: &[u8], payload: &str, end: u64) -> String {
        let payload = format!("{end}:{payload}");
        let mac = self.mac(context, payload.as_bytes()).finalize();
        let mac = BASE64.encode(mac);
        format!("{}.{mac}", BASE64.encode(payload))
    }

    /// Returns the payload; `None` when the signature is wrong, the state is for another request or
    /// expired, or this process has accepted it before.
    pub(in crate::server) fn open(&self, context: &[u8], sealed: &str) -> Option<Opened> {
        let (payload, own) = sealed.split_once('.')?;
        let (payload, own) = (BASE64.decode(payload).ok()?, BASE64.decode(own).ok()?);
        let claimed = own.as_slice().try_into().ok()?;
        if !self.mac(context, &payload).finalize_verify(claimed) {
            return None;
        }
        let payload = String::from_utf8(payload).ok()?;
        let (end, payload) = payload.split_once(':')?;
        let end = end.parse::<u64>().ok().filter(|end| *end > now())?;
        let mut unspent = None;
        let payload = match &self.uses {
            StateUses::Any => payload,
            StateUses::Once(used) => {
                let (_, payload) = payload.split_once(':')?;
                used.take(end, &own, now()).then_some(payload)?
            }
            StateUses::OnceAnywhere(store) => {
                unspent = Some(Unspent {
                    store: store.clone(),
                    name: format!("state {}", hex(&own[..16])),
                    // Clocks of processes may differ by as much as a state lasts.
                    keep: 2 * LIFETIME,
                });
                payload.split_once(':')?.1
            }
        };
        Some(Opened {
            payload: payload.to_owned(),
            unspent,
        })
    }
}

/// Computes a digest that identifies a request, so that its state fits no other request. The order
/// of members, whitespace and escapes do not matter.
pub(in crate::server) fn context_of(method: &str, params: &Value) -> [u8; 32] {
    let mut hash = Hash::new();
    absorb(&mut hash, &Value::from(method));
    absorb(&mut hash, params);
    hash.finalize()
}

fn absorb(hash: &mut Hash, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            hash.update([b'{']);
            hash.update((members.len() as u64).to_le_bytes());
            for (name, value) in members {
                hash.update((name.len() as u64).to_le_bytes());
                hash.update(name);
                absorb(hash, value);
            }
        }
        Value::Array(elements) => {
            hash.update([b'[']);
            hash.update((elements.len() as u64).to_le_bytes());
            elements.iter().for_each(|element| absorb(hash, element));
        }
        plain => {
            let text = plain.to_string();
            hash.update([b'=']);
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_whole_fresh_and_meant_for_this_request_is_opened() {
        let seal = StateSigner::random().unwrap();
        let open = |seal: &StateSigner, context: &[u8], sealed: &str| {
            seal.open(context, sealed).map(|opened| opened.payload)
        };
        let sealed = seal.close(b"a", "payload: 1");
        assert_eq!(open(&seal, b"a", &sealed).as_deref(), Some("payload: 1"));
        assert_eq!(open(&seal, b"b", &sealed), None);
        assert_eq!(open(&StateSigner::random().unwrap(), b"a", &sealed), None);
        assert_eq!(
            open(&seal, b"a", &seal.close_until(b"a", "x", now() - 1)),
            None
        );
        for at in 0..sealed.len() {
            let mut other = sealed.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(open(&seal, b"a", &other), None, "{at}");
        }
        for broken in ["", ".", "a.b", &sealed[1..], &sealed[..sealed.len() - 1]] {
            assert_eq!(open(&seal, b"a", broken), None, "{broken}");
        }
    }

    #[test]
    fn a_request_is_the_same_however_it_is_spelt() {
        let of = |json: &str| context_of("m", &serde_json::from_str(json).unwrap());
        assert_eq!(
            of(r#"{"a":1,"b":[{}]}"#),
            of("{ \"b\": [{}], \"\\u0061\": 1 }")
        );
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":"1"}"#));
        assert_ne!(of(r#"{"a":[1,2]}"#), of(r#"{"a":[2,1]}"#));
        assert_ne!(of(r#"["a","b"]"#), of(r#"["ab"]"#));
        assert_ne!(context_of("m", &json!({})), context_of("n", &json!({})));
    }

    #[test]
    fn processes_share_a_key_unless_the_program_has_given_one() {
        let [one, other] = [(); 2].map(|()| StateSigner::random().unwrap());
        // A clone that an earlier connection has.
        let earlier = one.clone();
        let given = StateSigner::new([1; 32]);
        let once = StateSigner::random().unwrap().single_use();
        for signer in [&one, &other, &given, &once] {
            signer.share([7; 32]);
            signer.share([8; 32]);
        }
        let opens = |signer: &StateSigner, sealed: &str| signer.open(b"a", sealed).is_some();
        let sealed = one.close(b"a", "x");
        assert!(opens(&other, &sealed) && opens(&earlier, &sealed));
        assert!(!opens(&given, &sealed) && !opens(&once, &sealed));
        assert!(!opens(&one, &once.close(b"a", "x")));
        assert!(opens(&StateSigner::new([7; 32]), &sealed));
        assert!(opens(&StateSigner::new([1; 32]), &given.close(b"a", "x")));
    }
}
