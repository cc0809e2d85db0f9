//! A running call as its handler sees it: context, questions to the client, results in pieces.

mod ask;
mod context;
mod pieces;
mod round_trips;
mod state_signer;

pub use self::context::Context;
pub use self::pieces::Pieces;
pub(super) use self::round_trips::Attended;
pub use self::state_signer::StateSigner;
pub(super) use self::state_signer::StateUses;
