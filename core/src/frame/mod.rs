//! Where one message ends and the next begins, on carriers that do not say so themselves.

pub mod line;
