//! Chains: a front towards clients, middleware of the program, and the servers at their ends.

pub mod desk;
pub mod front;
pub mod served;
