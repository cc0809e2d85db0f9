//! The kind that each shape of message is decoded as.
#![allow(clippy::unwrap_used)]

use mcpbolt::json::DecodeErrorKind;
use mcpbolt::message::{Envelope, Fault, Field, Frame, Kind, Message, batch, decode};

fn parse(text: &str) -> Message {
    Message::parse(text.as_bytes(), 128).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[track_caller]
fn valid(text: &str, kind: Kind) -> Message {
    let message = parse(text);
    assert_eq!(message.as_ref().fault(), None, "{text}");
    assert_eq!(message.as_ref().kind(), kind, "{text}");
    message
}

#[track_caller]
fn invalid(text: &str, fault: Fault, id: Option<&str>, invites_answer: bool) {
    let message = parse(text);
    let view = message.as_ref();
    assert_eq!(view.kind(), Kind::Invalid, "{text}");
    assert_eq!(view.fault(), Some(fault), "{text}");
    assert_eq!(view.id().map(|id| id.raw()), id, "{text}");
    assert_eq!(view.envelope().invites_answer(), invites_answer, "{text}");
}

#[test]
fn a_call_with_every_routing_member() {
    let text = r#"{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{"name":"echo","uri":"file:///x","cursor":"c","requestId":7,"progressToken":"p","arguments":{"name":1},"other":[{"name":2}],"_meta":{"progressToken":5,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"x":{}},"io.modelcontextprotocol/clientInfo":{"name":"n"},"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/subscriptionId":"s","traceparent":"00-1","tracestate":"a=b","baggage":"k=v","vendor/x":null}}}"#;
    let message = valid(text, Kind::Request);
    let view = message.as_ref();
    let expected = [
        (Field::Version, r#""2.0""#),
        (Field::Id, r#""a-1""#),
        (Field::Method, r#""tools/call""#),
        (Field::Name, r#""echo""#),
        (Field::Uri, r#""file:///x""#),
        (Field::Cursor, r#""c""#),
        (Field::RequestId, "7"),
        (Field::Progress, r#""p""#),
        (Field::Arguments, r#"{"name":1}"#),
        (Field::ProgressToken, "5"),
        (Field::ProtocolVersion, r#""2026-07-28""#),
        (Field::ClientCapabilities, r#"{"x":{}}"#),
        (Field::ClientInfo, r#"{"name":"n"}"#),
        (Field::LogLevel, r#""debug""#),
        (Field::SubscriptionId, r#""s""#),
        (Field::Traceparent, r#""00-1""#),
        (Field::Tracestate, r#""a=b""#),
        (Field::Baggage, r#""k=v""#),
    ];
    for (field, raw) in expected {
        assert_eq!(view.raw(field), Some(raw), "{field:?}");
    }
    assert_eq!(view.name().as_deref(), Some("echo"));
    assert_eq!(view.method().as_deref(), Some("tools/call"));
    assert_eq!(view.request_id().and_then(|id| id.as_u64()), Some(7));
    assert!(view.params().is_some_and(|params| text.contains(params)));
    assert_eq!(view.raw(Field::Result), None);
}

/// R-RPC-02, R-RPC-21, R-RPC-25.
#[test]
fn kinds_follow_the_members_in_any_order() {
    valid(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, Kind::Request);
    valid(
        r#" { "method" : "ping" , "id" : "" , "jsonrpc" : "2.0" } "#,
        Kind::Request,
    );
    valid(
        r#"{"jsonrpc":"2.0","method":"x","params":{}}"#,
        Kind::Notification,
    );
    valid(
        r#"{"result":{"resultType":"complete"},"jsonrpc":"2.0","id":5}"#,
        Kind::Response,
    );
    let error = r#"{"error":{"code":-1,"message":"m","data":[1]},"jsonrpc":"2.0""#;
    for tail in ["}", r#","id":null}"#, r#","id":3}"#] {
        valid(&format!("{error}{tail}"), Kind::Error);
    }
    valid(
        r#"{"jsonrpc":"\u0032.0","id":1,"method":"tools\/call"}"#,
        Kind::Request,
    );
    let escaped = parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call"}"#);
    assert_eq!(escaped.as_ref().method().as_deref(), Some("tools/call"));
}

/// R-RPC-01, R-RPC-03, R-RPC-08 to R-RPC-10, R-RPC-12, R-RPC-22, R-ERR-02.
#[test]
fn each_shape_error_has_its_reason_and_keeps_the_id() {
    use Fault::*;
    let id = Some("1");
    for scalar in ["1", "\"x\"", "null", "true", "-0.5e1"] {
        invalid(scalar, NotAnObject, None, true);
    }
    invalid("{}", VersionMissing, None, true);
    invalid(r#"{"id":1,"method":"m"}"#, VersionMissing, id, true);
    invalid(r#"{"method":"m"}"#, VersionMissing, None, false);
    invalid(
        r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
        VersionWrong,
        id,
        true,
    );
    invalid(
        r#"{"jsonrpc":2.0,"id":1,"result":{}}"#,
        VersionWrong,
        id,
        false,
    );
    for bad in ["null", "true", "1.5", "1e3", "{}", "[1]", "-1.0"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{bad},"method":"m"}}"#);
        invalid(&text, IdType, None, true);
    }
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":{},"method":"m"}}"#,
        "7".repeat(5000)
    );
    invalid(&long, IdTooLong, None, true);
    invalid(
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        IdType,
        None,
        false,
    );
    invalid(
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        MethodType,
        id,
        true,
    );
    invalid(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#,
        ParamsType,
        id,
        true,
    );
    invalid(
        r#"{"jsonrpc":"2.0","method":"m","params":null}"#,
        ParamsType,
        None,
        false,
    );
    invalid(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#,
        RequestAndResponse,
        id,
        true,
    );
    invalid(
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
        ResultAndError,
        id,
        false,
    );
    invalid(r#"{"jsonrpc":"2.0","id":1}"#, NoContent, id, true);
    invalid(r#"{"jsonrpc":"2.0"}"#, UnknownShape, None, true);
    invalid(
        r#"{"jsonrpc":"2.0","id":1,"result":[]}"#,
        ResultType,
        id,
        false,
    );
    invalid(
        r#"{"jsonrpc":"2.0","result":{}}"#,
        ResultWithoutId,
        None,
        false,
    );
    for error in [
        "1",
        "{}",
        r#"{"code":1.5,"message":"m"}"#,
        r#"{"code":1,"message":2}"#,
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
        invalid(&text, ErrorShape, id, false);
    }
}

/// R-RPC-24.
#[test]
fn repeated_and_disguised_members_are_refused_at_every_level() {
    let id = Some("1");
    let cases = [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
            Fault::DuplicateMember,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}"#,
            Fault::EscapedMember,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","name":"y"}}"#,
            Fault::DuplicateMember,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"n\u0061me":"y"}}"#,
            Fault::EscapedMember,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"baggage":"a","baggage":"b"}}}"#,
            Fault::DuplicateMember,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"io.modelcontextprotocol\/protocolVersion":"b"}}}"#,
            Fault::EscapedMember,
        ),
    ];
    for (text, fault) in cases {
        invalid(text, fault, id, true);
    }
    invalid(
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":1,"resultTyp\u0065":2}}"#,
        Fault::EscapedMember,
        id,
        false,
    );
    // Elsewhere they are the application's business.
    valid(
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{"name":1,"name":2,"n\u0061me":3},"caf\u00e9":1}}"#,
        Kind::Request,
    );
}

#[test]
fn a_syntax_error_has_its_offset_and_the_id_before_it() {
    let cases = [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"m" x"#,
            DecodeErrorKind::UnexpectedByte,
            37,
            Some("7"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7"#,
            DecodeErrorKind::UnexpectedEnd,
            23,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"#,
            DecodeErrorKind::UnexpectedEnd,
            24,
            Some("7"),
        ),
        (
            r#"{"id":7,"id":8,"#,
            DecodeErrorKind::UnexpectedEnd,
            15,
            None,
        ),
        (r#"{"id":7.5,"#, DecodeErrorKind::UnexpectedEnd, 10, None),
        (
            r#"{"id":"a","method":"tools"#,
            DecodeErrorKind::UnexpectedEnd,
            25,
            Some("\"a\""),
        ),
        (
            r#"{"id":"a","method":"\q"}"#,
            DecodeErrorKind::BadEscape,
            20,
            Some("\"a\""),
        ),
        (
            r#"{"id":1,"x":01}"#,
            DecodeErrorKind::UnexpectedByte,
            13,
            Some("1"),
        ),
        (
            r#"{"id":1} {"id":2}"#,
            DecodeErrorKind::TrailingBytes,
            9,
            Some("1"),
        ),
        (
            "\u{feff}{\"id\":1}",
            DecodeErrorKind::UnexpectedByte,
            0,
            None,
        ),
        ("", DecodeErrorKind::UnexpectedEnd, 0, None),
    ];
    for (text, kind, offset, id) in cases {
        // Bytes after the frame must not matter, even if they would complete it.
        for tail in [
            [0u8; 64],
            [b'"'; 64],
            [b'}'; 64],
            [b'7'; 64],
            [b'\n'; 64],
            [b' '; 64],
            [b'{'; 64],
        ] {
            let buf = [text.as_bytes(), &tail].concat();
            let frame = Frame::new(&buf, text.len()).unwrap();
            let mut envelope = Envelope::new();
            let error = decode(frame, 128, &mut envelope).unwrap_err();
            assert_eq!((error.kind, error.offset), (kind, offset), "{text}");
            let view = mcpbolt::message::MessageRef::new(frame, &envelope);
            assert_eq!(view.id().map(|id| id.raw()), id, "{text}");
        }
    }
}

#[test]
fn utf8_is_checked_and_an_id_that_is_not_utf8_is_not_kept() {
    let mut envelope = Envelope::new();
    for (id, kept) in [("x", true), ("?", false)] {
        let mut buf = format!(r#"{{"id":"{id}","m":"!"}}"#).into_bytes();
        for byte in &mut buf {
            if matches!(*byte, b'?' | b'!') {
                *byte = 0xff;
            }
        }
        let len = buf.len();
        buf.resize(len + 64, 0);
        let error = decode(Frame::new(&buf, len).unwrap(), 128, &mut envelope).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::BadUtf8);
        assert_eq!(envelope.span(Field::Id).is_some(), kept);
    }
}

/// R-RPC-23.
#[test]
fn nesting_is_counted_exactly_and_ends_at_the_limit() {
    for limit in [1usize, 2, 62, 63, 64, 65, 128, 512, 1024] {
        for depth in [limit - 1, limit, limit + 1] {
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let verdict = mcpbolt::json::validate(text.as_bytes(), limit);
            if depth == 0 {
                continue;
            }
            assert_eq!(verdict.is_ok(), depth <= limit, "{depth} of {limit}");
            if limit > 2 && depth > 2 {
                let inner = "[".repeat(depth - 2) + &"]".repeat(depth - 2);
                let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"x":{inner}}}}}"#);
                let verdict = Message::parse(text.as_bytes(), limit);
                assert_eq!(verdict.is_ok(), depth <= limit, "{depth} of {limit}");
            }
        }
    }
    let bomb = "[".repeat(100_000);
    let error = mcpbolt::json::validate(bomb.as_bytes(), 128).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::TooDeep);
    // No limit allows more than 1024 levels.
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    for (levels, goes) in [(1024, true), (1025, false), (100_000, false)] {
        let verdict = mcpbolt::json::validate(deep(levels).as_bytes(), usize::MAX);
        assert_eq!(verdict.is_ok(), goes, "{levels}");
    }
    let mixed = r#"[{"a":[{"b":"#.repeat(200) + "1" + &"}]}]".repeat(200);
    assert!(mcpbolt::json::validate(mixed.as_bytes(), 800).is_ok());
    assert!(mcpbolt::json::validate(mixed.as_bytes(), 799).is_err());
    let crossed = mixed.replacen("}]", "]}", 1);
    assert!(mcpbolt::json::validate(crossed.as_bytes(), 800).is_err());
}

#[test]
fn a_batch_yields_its_elements_as_frames() {
    let text = r#" [ {"jsonrpc":"2.0","id":1,"method":"a"} ,5,{"jsonrpc":"2.0","method":"b"}] "#;
    let message = valid(text, Kind::Batch);
    let mut seen = Vec::new();
    for frame in batch(message.frame().unwrap()) {
        let mut envelope = Envelope::new();
        decode(frame, 128, &mut envelope).unwrap();
        seen.push(envelope.kind());
    }
    assert_eq!(seen, [Kind::Request, Kind::Invalid, Kind::Notification]);
    assert_eq!(batch(parse("[]").frame().unwrap()).count(), 0);
    assert_eq!(batch(parse("{}").frame().unwrap()).count(), 0);
    assert!(Message::parse(b"[{}", 8).is_err());
}

#[test]
fn a_detached_message_reads_like_the_borrowed_one() {
    let message = valid(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"n"}}"#,
        Kind::Request,
    );
    let copy = message.as_ref().detach();
    assert_eq!(copy.as_ref().envelope(), message.as_ref().envelope());
    assert_eq!(copy.as_ref().name().as_deref(), Some("n"));
    assert_eq!(copy.to_bytes(), message.bytes());
    assert_eq!(copy.slice(Field::Name).as_deref(), Some(&b"\"n\""[..]));
    assert!(
        Message::from_block(
            copy.to_bytes(),
            copy.bytes().len(),
            *copy.as_ref().envelope()
        )
        .is_none()
    );
}
