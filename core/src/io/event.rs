//! Telling the log what happens to servers, never what is said to them.

/// An event of `tracing`, where that is built in.
macro_rules! event {
    ($level:ident, $($fields:tt)+) => {{
        #[cfg(feature = "tracing")]
        tracing::$level!($($fields)+);
    }};
}
