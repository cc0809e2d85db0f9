//! The `_meta` keys the engine owns, and the envelope a stateless request carries in them.

/// `_meta` key of a stateless request's version (R-MET-04).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key of a stateless request's client capabilities (R-MET-04).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key of a stateless request's client name and version (R-MET-05).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key of the log level a stateless request asks for (R-LOG-03).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// `_meta` key of a stateless result's server name and version (R-MET-06).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// `_meta` key of the subscription a notification belongs to (R-SUB-04).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// `_meta` key of the task a message belongs to (2025-11-25, R-MET-12).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// Prefix of the keys above.
pub const PREFIX: &str = "io.modelcontextprotocol/";

#[cfg(test)]
mod tests {
    use super::*;

    /// R-MET-01, R-MET-02.
    #[test]
    fn keys_of_the_protocol_stand_under_its_prefix() {
        let keys = [
            PROTOCOL_VERSION,
            CLIENT_CAPABILITIES,
            CLIENT_INFO,
            LOG_LEVEL,
            SERVER_INFO,
            SUBSCRIPTION_ID,
            RELATED_TASK,
        ];
        for key in keys {
            assert!(
                key.starts_with(PREFIX) && super::super::extension::is_id(key),
                "{key}"
            );
        }
        assert_eq!(PREFIX.split('.').nth(1), Some("modelcontextprotocol/"));
    }
}
