//! One outgoing message, with the fields that the transport needs.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::json::{number, reader};
use crate::mcp::{Method, meta};

/// One message of this side, as the engine encoded it.
#[derive(Clone, Debug, Default)]
pub struct OutgoingMessage {
    pub body: Bytes,
    /// The id of a request; `None` for a notification or an answer.
    pub id: Option<u64>,
    /// The method, if some revision defines it.
    pub method: Option<Method>,
    /// The method of a request or notification, as a JSON string.
    method_name: Option<Box<str>>,
    /// Where the params are, if the message has any.
    params: Option<Range<usize>>,
    /// Whether the message was refused before because its session had ended.
    pub renewed: bool,
    /// Whether the message was refused before because of its headers.
    pub relisted: bool,
    /// How often tools had been listed again for that reason when the message was sent.
    pub listings: u64,
}

impl OutgoingMessage {
    pub fn new(body: Bytes) -> Self {
        let (mut id, mut name, mut params) = (None, None, None);
        let text = simdutf8::basic::from_utf8(&body).unwrap_or("{}");
        // Both come before the members that may be long.
        for (member, value) in reader::members(text) {
            match member.raw() {
                "id" => id = Some(value),
                "method" => name = reader::as_str(value),
                "params" => {
                    // A slice of the text.
                    let start = value.as_ptr().addr() - text.as_ptr().addr();
                    params = Some(start..start + value.len());
                    break;
                }
                "result" | "error" => break,
                _ => {}
            }
        }
        let id = id.filter(|_| name.is_some()).and_then(number::as_u64);
        let name = name.map(|name| Box::from(&*name));
        Self {
            id,
            method: name.as_deref().and_then(Method::parse),
            method_name: name,
            params,
            body,
            ..Self::default()
        }
    }

    /// A copy to keep, without the room that its buffer had for others.
    pub fn kept(&self) -> Self {
        Self {
            body: Bytes::copy_from_slice(&self.body),
            ..self.clone()
        }
    }

    /// A request of the action dialect, whose id is in its metadata.
    pub fn action(body: Bytes) -> Self {
        let text = simdutf8::basic::from_utf8(&body).unwrap_or("{}");
        let id = reader::find_path(text, &["metadata", "request_id"]).and_then(reader::as_str);
        Self {
            id: id.and_then(|id| number::as_u64(&id)),
            body,
            ..Self::default()
        }
    }

    /// The method of a request or notification.
    pub fn method_name(&self) -> Option<&str> {
        self.method_name.as_deref()
    }

    /// Whether the message may be sent again if it is not known whether it arrived.
    pub fn is_repeatable(&self) -> bool {
        self.method.is_some_and(Method::is_repeatable)
    }

    pub fn text(&self) -> &str {
        simdutf8::basic::from_utf8(&self.body).unwrap_or("{}")
    }

    fn params(&self) -> &str {
        let params = self.params.clone().and_then(|it| self.body.get(it));
        let text = params.and_then(|params| simdutf8::basic::from_utf8(params).ok());
        text.unwrap_or("{}")
    }

    /// The URI that a subscription is to.
    pub fn uri(&self) -> Option<String> {
        let uri = reader::find(self.params(), "uri").and_then(reader::as_str);
        uri.map(Cow::into_owned)
    }

    /// The params that headers repeat, read in one pass.
    pub fn repeated(&self) -> RepeatedParams<'_> {
        let named_by = match self.method {
            Some(Method::CallTool | Method::GetPrompt) => "name",
            Some(Method::ReadResource) => "uri",
            // R-TSX-15
            Some(Method::GetTask | Method::UpdateTask | Method::CancelTask) => "taskId",
            _ => "",
        };
        let mut found = RepeatedParams::default();
        for (member, value) in reader::members(self.params()) {
            match member.raw() {
                "_meta" if found.version.is_none() => {
                    let version = reader::find(value, meta::PROTOCOL_VERSION);
                    found.version = version.and_then(reader::as_str);
                }
                "arguments" if found.arguments.is_empty() => found.arguments = value,
                name if name == named_by && found.target.is_none() => {
                    found.target = reader::as_str(value);
                }
                _ => {}
            }
        }
        found
    }

    /// The id of the request that a `notifications/cancelled` cancels.
    pub fn cancels(&self) -> Option<u64> {
        self.cancels_token().and_then(number::as_u64)
    }

    /// The same id as JSON text.
    pub fn cancels_token(&self) -> Option<&str> {
        if self.method != Some(Method::Cancelled) || self.id.is_some() {
            return None;
        }
        reader::find(self.params(), "requestId")
    }

    /// The id of a request as JSON text; it need not be an id of this engine.
    pub fn token(&self) -> Option<&str> {
        self.method_name()?;
        reader::find(self.text(), "id").filter(|id| *id != "null")
    }
}

/// Params that headers repeat.
#[derive(Default)]
pub struct RepeatedParams<'a> {
    /// The name of the tool, prompt, resource or task that a request targets.
    pub target: Option<Cow<'a, str>>,
    /// The revision that the message itself names.
    pub version: Option<Cow<'a, str>>,
    /// The arguments of a tool call, as a JSON object; empty if there are none.
    pub arguments: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &'static str) -> OutgoingMessage {
        OutgoingMessage::new(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_message_is_known_by_its_head() {
        let call = of(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a\"b","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        );
        assert_eq!((call.id, call.method), (Some(7), Some(Method::CallTool)));
        let repeated = call.repeated();
        assert_eq!(repeated.target.as_deref(), Some("a\"b"));
        assert_eq!(repeated.version.as_deref(), Some("2026-07-28"));
        assert_eq!((repeated.arguments, call.cancels()), ("", None));
        assert_eq!(call.token(), Some("7"));

        let answer = of(r#"{"jsonrpc":"2.0","id":7,"result":{"method":"x","id":8}}"#);
        assert_eq!((answer.id, answer.method_name()), (None, None));
        assert_eq!(answer.token(), None);

        let cancel = of(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9,"reason":"x"}}"#,
        );
        assert_eq!((cancel.id, cancel.cancels()), (None, Some(9)));
        assert_eq!((cancel.token(), cancel.cancels_token()), (None, Some("9")));

        let unknown = of(r#"{"jsonrpc":"2.0","id":1,"method":"acme/x"}"#);
        assert_eq!(
            (unknown.method, unknown.method_name()),
            (None, Some("acme/x"))
        );
    }
}
