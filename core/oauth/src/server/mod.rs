//! Resource servers: the checks of access tokens and of proofs, the keys of issuers, and the metadata
//! document. Nothing here reads a clock or sends a request.
//!
//! ```text
//!   request ─▶ PresentedToken ─▶ TokenCache ──────────────────────────┬─▶ TokenInfo ─▶ binding, scopes
//!                                   │ ╰─▶ Jws ─▶ KeyCache ─▶ claims ──┤      (certificate, ProofRules)
//!                                   ╰───▶ Introspection ──────────────╯
//! ```

mod cache;
mod claims;
mod introspection;
mod jws;
mod key_cache;
mod key_set;
mod metadata;
mod presented;
mod proof;
mod refusal;
mod replays;

pub use self::cache::{MAX_CACHED_TOKENS, TokenCache, TokenDigest, TokenDigester};
pub use self::claims::{Binding, TokenInfo, TokenRules};
pub use self::introspection::{ClientSecret, Introspection};
pub use self::jws::{Jws, MAX_TOKEN_BYTES};
pub use self::key_cache::{KeyCache, KeyLookup};
pub use self::key_set::KeySet;
pub use self::metadata::{ResourceMetadata, is_safe_url};
pub use self::presented::{PresentedToken, TokenScheme};
pub use self::proof::{Nonces, ProofRequest, ProofRules, UsedProof};
pub use self::refusal::{RefusalKind, TokenRefusal};
pub use self::replays::{MAX_REPLAYS, ReplayCache};
