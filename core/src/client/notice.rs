//! Notifications from a server.

use crate::json::reader;
use crate::mcp::{LogLevel, Method};

/// A notification from the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// The list of tools has changed.
    ToolsChanged,
    /// The list of prompts has changed.
    PromptsChanged,
    /// The list of resources has changed.
    ResourcesChanged,
    /// A subscribed resource, or a part of it, has changed.
    ResourceUpdated {
        /// Its URI.
        uri: String,
    },
    /// A log message.
    Log {
        /// Its severity.
        level: LogLevel,
        /// The name of the logger.
        logger: Option<String>,
        /// The message, raw JSON.
        data: &'a str,
    },
    /// The user has completed a URL-mode elicitation.
    ElicitationComplete {
        /// The id of the elicitation.
        id: String,
    },
    /// Any other notification.
    Other {
        /// The method.
        method: &'a str,
        /// The params, a raw JSON object.
        params: Option<&'a str>,
    },
}

impl<'a> Notice<'a> {
    /// Parses a notification. A known method with invalid params becomes [`Notice::Other`].
    pub fn parse(method: &'a str, params: Option<&'a str>) -> Self {
        let raw = |name| reader::find(params?, name);
        let text = |name| Some(reader::as_str(raw(name)?)?.into_owned());
        let known = match Method::parse(method) {
            Some(Method::ToolsChanged) => Some(Self::ToolsChanged),
            Some(Method::PromptsChanged) => Some(Self::PromptsChanged),
            Some(Method::ResourcesChanged) => Some(Self::ResourcesChanged),
            Some(Method::ResourceUpdated) => text("uri").map(|uri| Self::ResourceUpdated { uri }),
            Some(Method::ElicitationComplete) => {
                text("elicitationId").map(|id| Self::ElicitationComplete { id })
            }
            Some(Method::LogMessage) => {
                let level = text("level").and_then(|name| LogLevel::parse(&name));
                level.zip(raw("data")).map(|(level, data)| Self::Log {
                    level,
                    logger: text("logger"),
                    data,
                })
            }
            _ => None,
        };
        known.unwrap_or(Self::Other { method, params })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_notifications_are_read_and_others_handed_on() {
        let read = |method, params| Notice::parse(method, Some(params));
        assert_eq!(
            read("notifications/resources/updated", r#"{"uri":"a:\u0062"}"#),
            Notice::ResourceUpdated { uri: "a:b".into() }
        );
        assert_eq!(
            read("notifications/message", r#"{"level":"error","data":[1]}"#),
            Notice::Log {
                level: LogLevel::Error,
                logger: None,
                data: "[1]"
            }
        );
        for (method, params) in [
            ("notifications/message", r#"{"level":"loud","data":1}"#),
            ("notifications/resources/updated", "{}"),
            ("notifications/else", "{}"),
        ] {
            let params = Some(params);
            assert_eq!(
                Notice::parse(method, params),
                Notice::Other { method, params }
            );
        }
    }
}
