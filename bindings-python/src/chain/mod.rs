//! Chains: a front towards clients, middleware of the program, and the servers at their ends.

pub mod approvals;
pub mod front;
pub mod handoffs;
pub mod reports;
pub mod rules;
pub mod served;
