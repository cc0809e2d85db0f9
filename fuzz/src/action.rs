//! Laws for every input of the action dialect.

use mcpbolt::action::{ActionRef, Fault, Field, Kind, Record, decode};
use mcpbolt::buffer::PADDING;
use mcpbolt::json::{self, DecodeErrorKind};
use mcpbolt::message::Frame;

use crate::laws::kernels;
use crate::oracle;

const DEPTH: usize = 1024;

/// The members that decoding records, at the top level, in `metadata` and in `error`.
const TOP: [(&str, Field); 9] = [
    ("action", Field::Action),
    ("params", Field::Params),
    ("tool", Field::Tool),
    ("context", Field::Context),
    ("metadata", Field::Metadata),
    ("status", Field::Status),
    ("data", Field::Data),
    ("error", Field::Error),
    ("type", Field::Type),
];
const METADATA: [(&str, Field); 5] = [
    ("request_id", Field::RequestId),
    ("client_id", Field::ClientId),
    ("protocol_version", Field::ProtocolVersion),
    ("version", Field::Version),
    ("auth", Field::Auth),
];
const ERROR: [(&str, Field); 4] = [
    ("type", Field::ErrorType),
    ("message", Field::ErrorMessage),
    ("details", Field::ErrorDetails),
    ("code", Field::ErrorCode),
];

/// A frame decodes to the members that serde_json finds, with any bytes after it and with every kernel.
pub fn message(bytes: &[u8]) {
    let mut first = None;
    for (isa, filler) in kernels().zip([0u8, b'"', b'}', b'5'].into_iter().cycle()) {
        isa.choose();
        let mut block = bytes.to_vec();
        block.resize(bytes.len() + PADDING, filler);
        let mut record = Record::new();
        let frame = Frame::new(&block, bytes.len()).expect("the block is padded");
        let verdict = decode(frame, DEPTH, &mut record);
        let shown = String::from_utf8_lossy(bytes);
        let plain = json::validate(bytes, DEPTH);
        let too_deep = verdict.is_err_and(|error| error.kind == DecodeErrorKind::TooDeep);
        assert!(
            too_deep || verdict == plain,
            "{verdict:?}, {plain:?}: {shown}"
        );
        if verdict.is_ok() {
            agrees(ActionRef::new(frame, &record));
        }
        match &first {
            None => first = Some((verdict, record)),
            Some(first) => assert_eq!(*first, (verdict, record), "{isa:?}: {shown}"),
        }
    }
}

/// The recorded members are those that serde_json finds, and determine the kind of the message.
fn agrees(message: ActionRef<'_>) {
    let text = std::str::from_utf8(message.bytes()).expect("accepted frames are UTF-8");
    let Some(members) = oracle::members(text) else {
        let is_object = text.trim_start().starts_with('{');
        let is_refused = message.fault() == Some(Fault::NotAnObject);
        assert!(is_object || is_refused, "{text}");
        return;
    };
    let mut found = Vec::new();
    let mut repeated = note(&mut found, &members, &TOP);
    let mut unreadable = false;
    for (field, inner) in [(Field::Metadata, &METADATA[..]), (Field::Error, &ERROR)] {
        let raws = found.iter().filter(|(noted, _)| *noted == field);
        let raw = raws.map(|(_, raw)| *raw).next();
        // If serde_json cannot read a key, the members cannot be compared.
        let Some(members) = raw.and_then(oracle::members) else {
            unreadable |= raw.is_some_and(|raw| raw.starts_with('{'));
            continue;
        };
        repeated |= note(&mut found, &members, inner);
    }
    if message.fault() == Some(Fault::EscapedMember) || (repeated && text.contains('\\')) {
        return;
    }
    let is_repeated = message.fault() == Some(Fault::DuplicateMember);
    if repeated {
        assert!(is_repeated, "{text}");
        return;
    }
    for (field, raw) in &found {
        assert_eq!(message.raw(*field), Some(*raw), "{field:?} in {text}");
    }
    if is_repeated {
        // The repetition is in an object under a repeated name, or in one that serde_json could not read.
        return;
    }
    let starts = |field, first: char| {
        let member = found.iter().find(|(noted, _)| *noted == field);
        member.map(|(_, raw)| raw.starts_with(first))
    };
    let is_request = starts(Field::Action, '"') == Some(true)
        && starts(Field::Status, '"').is_none()
        && starts(Field::Params, '{') != Some(false)
        && starts(Field::Tool, '"') != Some(false)
        && starts(Field::Context, '"') != Some(false)
        && starts(Field::Metadata, '{') != Some(false);
    assert_eq!(message.kind() == Kind::Request, is_request, "{text}");
    let is_error = starts(Field::ErrorType, '"') == Some(true) || unreadable;
    assert!(message.kind() != Kind::Error || is_error, "{text}");
    assert_eq!(
        message.kind() == Kind::Invalid,
        message.fault().is_some(),
        "{text}"
    );
}

/// Records the first member of each name. Returns whether a name is repeated.
fn note<'a>(
    found: &mut Vec<(Field, &'a str)>,
    members: &[(String, &'a str)],
    names: &[(&str, Field)],
) -> bool {
    let mut repeated = false;
    for (name, raw) in members {
        let Some((_, field)) = names.iter().find(|(noted, _)| noted == name) else {
            continue;
        };
        match found.iter().any(|(noted, _)| noted == field) {
            true => repeated = true,
            false => found.push((*field, raw)),
        }
    }
    repeated
}
