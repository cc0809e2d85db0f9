//! Messages as the dialect's document shows them, and invalid ones.

use super::encode::{self, ActionError, AnswerMetadata, RequestParts};
use super::*;
use crate::buffer::Input;
use crate::json::{number, reader};
use crate::message::{Envelope, Fault, Frame, Kind};

const DEPTH: usize = 64;

/// Decodes `text` and passes the message to `look`.
fn seen<T>(text: &str, look: impl FnOnce(MessageRef<'_>) -> T) -> T {
    let mut input = Input::new();
    input.extend(text.as_bytes());
    let frame = Frame::new(input.padded(), input.len()).unwrap();
    let mut envelope = Envelope::new();
    decode(frame, DEPTH, &mut envelope).unwrap_or_else(|error| panic!("{text}: {error}"));
    look(MessageRef::new(frame, &envelope))
}

fn error_type<'a>(message: &MessageRef<'a>) -> Option<Cow<'a, str>> {
    reader::as_str(reader::find(message.error()?, "type")?)
}

/// R-ACT-01, R-ACT-08, R-ACT-09: a request with all members, in any order.
#[test]
fn a_request_is_read_whatever_the_order_of_its_members() {
    let members = [
        r#""action": "file_system.read""#,
        r#""params": {"path": "/data/file.txt", "action": {"status": 1}}"#,
        r#""tool": "filesystem_tool""#,
        r#""context": "session-123""#,
        r#""metadata": {"version": "1.0", "client_id": "agent-xyz", "request_id": "uuid-xyz-123", "timestamp": "2023-10-25T12:34:56Z"}"#,
        r#""later": [{"action": 1}]"#,
    ];
    for turn in 0..members.len() {
        let mut members = members;
        members.rotate_left(turn);
        let text = format!("{{{}}}", members.join(" , "));
        seen(&text, |message| {
            assert_eq!(message.kind(), Kind::Request, "{text}");
            assert_eq!(message.name().as_deref(), Some("file_system.read"));
            assert_eq!(message.decoded(TOOL).as_deref(), Some("filesystem_tool"));
            assert_eq!(context_of(&message).as_deref(), Some("session-123"));
            assert_eq!(message.raw(Field::Id), Some(r#""uuid-xyz-123""#));
            // R-ACT-39
            assert_eq!(message.protocol_version().as_deref(), Some("1.0"));
            assert!(message.arguments().unwrap().starts_with(r#"{"path""#));
        });
    }
}

/// R-ACT-37, R-ACT-39: `protocol_version` takes precedence over `version`.
#[test]
fn the_protocol_version_has_a_stand_in() {
    let text =
        r#"{"action":"a","params":{},"metadata":{"version":"1.0","protocol_version":"2.0"}}"#;
    seen(text, |message| {
        assert_eq!(message.protocol_version().as_deref(), Some("2.0"));
    });
}

/// R-ACT-05, R-ACT-24: answers and the parts of a stream, as the document shows them.
#[test]
fn answers_and_parts_of_streams_are_told_apart() {
    for (text, kind) in [
        (
            r#"{"status":"success","data":{"content":"File content here"},"metadata":{"server_id":"filesystem_tool","execution_time_ms":120,"request_id":"uuid-xyz-123"}}"#,
            Kind::Response,
        ),
        (r#"{"status":"success"}"#, Kind::Response),
        (
            r#"{"status":"error","error":{"type":"RESOURCE_NOT_FOUND","message":"File '/data/file.txt' not found.","details":{"path":"/data/file.txt"},"code":404}}"#,
            Kind::Error,
        ),
        // An item of a batch.
        (
            r#"{"id":"item2","status":"error","error":{"type":"VALIDATION_ERROR"}}"#,
            Kind::Error,
        ),
        (
            r#"{"type": "partial", "data": {"token": "The"}}"#,
            Kind::Notification,
        ),
        (
            r#"{"type": "complete", "status": "success", "data": {"full_text": "The quick brown fox"}}"#,
            Kind::Response,
        ),
        (
            r#"{"type": "error", "error": {"type": "PROCESSING_ERROR", "message": "Failed to generate text"}}"#,
            Kind::Error,
        ),
    ] {
        seen(text, |message| {
            assert_eq!((message.kind(), message.fault()), (kind, None), "{text}");
            let is_error = error_type(&message).is_some();
            assert_eq!(is_error, kind == Kind::Error, "{text}");
        });
    }
}

/// R-ACT-05, R-ACT-06: JSON that is not a message, with its fault and error type.
#[test]
fn what_is_no_message_says_why() {
    for (text, fault) in [
        ("[]", Fault::NotAnObject),
        (r#""action""#, Fault::NotAnObject),
        ("{}", Fault::ActionMissing),
        (r#"{"params":{}}"#, Fault::ActionMissing),
        (r#"{"action":7,"params":{}}"#, Fault::ActionType),
        (r#"{"action":null}"#, Fault::ActionType),
        (r#"{"action":"a","params":[]}"#, Fault::ParamsType),
        (r#"{"action":"a","params":null}"#, Fault::ParamsType),
        (r#"{"action":"a","tool":1}"#, Fault::ToolType),
        (r#"{"action":"a","context":{}}"#, Fault::ContextType),
        (r#"{"action":"a","metadata":"m"}"#, Fault::MetadataType),
        (r#"{"action":"a","action":"b"}"#, Fault::DuplicateMember),
        (
            r#"{"action":"a","metadata":{"request_id":1,"request_id":2}}"#,
            Fault::DuplicateMember,
        ),
        (r#"{"action":"a","\u0061ction":"b"}"#, Fault::EscapedMember),
        (
            r#"{"action":"a","status":"success"}"#,
            Fault::RequestAndResponse,
        ),
        (r#"{"status":"perhaps"}"#, Fault::StatusWrong),
        (r#"{"status":1}"#, Fault::StatusWrong),
        (r#"{"type":"half","data":{}}"#, Fault::TypeWrong),
        (r#"{"status":"error"}"#, Fault::ActionErrorShape),
        (r#"{"status":"error","error":{}}"#, Fault::ActionErrorShape),
        (r#"{"status":"error","error":"E"}"#, Fault::ActionErrorShape),
        (
            r#"{"status":"success","error":{"type":"CONFLICT"}}"#,
            Fault::ActionErrorShape,
        ),
    ] {
        seen(text, |message| {
            assert_eq!(
                (message.kind(), message.fault()),
                (Kind::Invalid, Some(fault)),
                "{text}"
            );
            let names_none = matches!(fault, Fault::ActionMissing | Fault::ActionType);
            let kind = ErrorType::from(fault);
            assert_eq!(kind == ErrorType::MissingAction, names_none, "{text}");
            assert_eq!(kind == ErrorType::Validation, !names_none, "{text}");
        });
    }
}

/// R-ACT-04, R-ACT-06: the error for an incomplete message carries the id if that could be read.
#[test]
fn an_id_that_stood_before_a_fault_of_syntax_is_kept() {
    for (text, id) in [
        (
            r#"{"metadata":{"request_id":"r1"},"action":"a","params":{"#,
            Some(r#""r1""#),
        ),
        (r#"{"metadata":{"request_id": 7 , x"#, Some("7")),
        (r#"{"metadata":{"request_id":"r1"#, None),
        (r#"{"metadata":{"request_id":12"#, None),
        (r#"{"action":"a","#, None),
        ("", None),
    ] {
        let mut input = Input::new();
        input.extend(text.as_bytes());
        let frame = Frame::new(input.padded(), input.len());
        // An empty buffer has no padding to look at.
        let Some(frame) = frame else { continue };
        let mut envelope = Envelope::new();
        assert!(decode(frame, DEPTH, &mut envelope).is_err(), "{text}");
        let message = MessageRef::new(frame, &envelope);
        assert_eq!(
            (message.kind(), message.raw(Field::Id)),
            (Kind::Invalid, id),
            "{text}"
        );
    }
}

/// R-ACT-02, R-ACT-03, R-ACT-04, R-ACT-05: encoded messages match the document and decode again; an
/// id of any type is kept byte for byte.
#[test]
fn what_is_encoded_is_decoded_again() {
    for id in [
        r#""req\u002d456""#,
        "7",
        "1.50",
        "null",
        "-0",
        r#"{"a":[1]}"#,
    ] {
        let mut out = Vec::new();
        let metadata = format!("{{\"client_id\":\"agent-alpha\",\"request_id\":{id}}}");
        let parts = RequestParts {
            tool: Some("fs \"tool\""),
            context: Some("conversation-123"),
            metadata: Some(&metadata),
        };
        encode::request(
            &mut out,
            "file_system.list_directory",
            "{\"path\":\"/usr/data\"}",
            parts,
        );
        let text = String::from_utf8(out).unwrap();
        seen(&text, |message| {
            assert_eq!(message.kind(), Kind::Request, "{text}");
            assert_eq!(message.raw(Field::Id), Some(id), "{text}");
            assert_eq!(message.decoded(TOOL).as_deref(), parts.tool);
            assert_eq!(message.arguments(), Some("{\"path\":\"/usr/data\"}"));
        });

        let metadata = AnswerMetadata {
            request_id: Some(id),
            server_id: Some("fs-tool-prod"),
            execution_time_ms: Some(45),
            protocol_version: None,
        };
        let mut out = Vec::new();
        encode::success(&mut out, Some("{\"files\":[]}"), metadata);
        let text = String::from_utf8(out).unwrap();
        let shown = format!(
            "{{\"status\":\"success\",\"data\":{{\"files\":[]}},\"metadata\":{{\"server_id\":\"fs-tool-prod\",\"execution_time_ms\":45,\"request_id\":{id}}}}}"
        );
        assert_eq!(text, shown);
        seen(&text, |message| {
            assert_eq!(
                (message.kind(), message.raw(Field::Id)),
                (Kind::Response, Some(id))
            );
        });
    }
}

/// R-ACT-05, R-ACT-24, R-ACT-30, R-ACT-31, R-ACT-32
#[test]
fn every_error_is_written_and_read_with_its_type_and_code() {
    let metadata = AnswerMetadata::default();
    for kind in ErrorType::all() {
        let error = ActionError {
            details: Some("{\"parameter\":\"b\"}"),
            help_url: Some("https://example.com/help"),
            ..ActionError::new(kind, "it \"failed\"")
        };
        for write in [encode::error, encode::failed] {
            let mut out = Vec::new();
            write(&mut out, &error, metadata);
            let text = String::from_utf8(out).unwrap();
            seen(&text, |message| {
                assert_eq!(message.kind(), Kind::Error, "{text}");
                let found = error_type(&message).and_then(|kind| ErrorType::parse(&kind));
                assert_eq!(found, Some(kind));
                let code = message.raw(Field::ErrorCode).and_then(number::as_i64);
                assert_eq!(code, Some(i64::from(kind.code())));
                assert_eq!(
                    message.decoded(Field::ErrorMessage).as_deref(),
                    Some("it \"failed\"")
                );
                assert_eq!(message.raw(Field::ErrorData), error.details);
            });
        }
    }
    // A handler's own type is sent unchanged.
    let error = ActionError {
        kind: "PERMISSION_DENIED",
        code: None,
        ..ActionError::new(ErrorType::Internal, "no")
    };
    let mut out = Vec::new();
    encode::error(&mut out, &error, metadata);
    let shown = r#"{"status":"error","error":{"type":"PERMISSION_DENIED","message":"no"}}"#;
    assert_eq!(String::from_utf8(out).as_deref(), Ok(shown));
}

/// R-ACT-24: the parts of a stream.
#[test]
fn parts_of_streams_are_written_as_the_document_shows_them() {
    let metadata = AnswerMetadata::default();
    let mut out = Vec::new();
    encode::partial(&mut out, "{\"token\":\"The\"}", metadata);
    assert_eq!(out, br#"{"type":"partial","data":{"token":"The"}}"#);
    out.clear();
    encode::complete(&mut out, Some("{\"full_text\":\"The\"}"), metadata);
    let shown = r#"{"type":"complete","status":"success","data":{"full_text":"The"}}"#;
    assert_eq!(out, shown.as_bytes());
}
