//! Logs events of servers, never the contents of messages.

/// Emits a `tracing` event if the feature is built in.
macro_rules! event {
    ($level:ident, $($fields:tt)+) => {{
        #[cfg(feature = "tracing")]
        tracing::$level!($($fields)+);
    }};
}
