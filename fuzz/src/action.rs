//! Laws for every input of the action dialect.

use mcpbolt::action::{CONTEXT, TOOL, decode};
use mcpbolt::buffer::PADDING;
use mcpbolt::json::{self, DecodeErrorKind};
use mcpbolt::message::{Envelope, Fault, Field, Frame, Kind, MessageRef};

use crate::laws::kernels;
use crate::oracle;

const DEPTH: usize = 1024;

/// The members that decoding looks at, with the field of those that it records: at the top level, in
/// `metadata` and in `error`.
type Names = [(&'static str, Option<Field>)];
const TOP: &Names = &[
    ("action", Some(Field::Name)),
    ("params", Some(Field::Arguments)),
    ("tool", Some(TOOL)),
    ("context", Some(CONTEXT)),
    ("metadata", Some(Field::Meta)),
    ("status", None),
    ("data", Some(Field::Result)),
    ("error", Some(Field::Error)),
    ("type", Some(Field::ResultType)),
];
const METADATA: &Names = &[
    ("request_id", Some(Field::Id)),
    ("client_id", Some(Field::RequestId)),
    ("protocol_version", Some(Field::ProtocolVersion)),
    ("version", None),
    ("server_id", None),
    ("execution_time_ms", None),
    ("auth", None),
    ("stream", None),
];
const ERROR: &Names = &[
    ("type", None),
    ("message", Some(Field::ErrorMessage)),
    ("details", Some(Field::ErrorData)),
    ("code", Some(Field::ErrorCode)),
];

/// The members of one object that stand in its table, each name once.
type Found<'a> = Vec<((&'static str, Option<Field>), &'a str)>;

/// A frame decodes to the members that serde_json finds, with any bytes after it and with every kernel.
pub fn message(bytes: &[u8]) {
    let mut first = None;
    for (isa, filler) in kernels().zip([0u8, b'"', b'}', b'5'].into_iter().cycle()) {
        isa.choose();
        let mut block = bytes.to_vec();
        block.resize(bytes.len() + PADDING, filler);
        let mut envelope = Envelope::new();
        let frame = Frame::new(&block, bytes.len()).expect("the block is padded");
        let verdict = decode(frame, DEPTH, &mut envelope);
        let shown = String::from_utf8_lossy(bytes);
        let plain = json::validate(bytes, DEPTH);
        let too_deep = verdict.is_err_and(|error| error.kind == DecodeErrorKind::TooDeep);
        assert!(
            too_deep || verdict == plain,
            "{verdict:?}, {plain:?}: {shown}"
        );
        if verdict.is_ok() {
            agrees(MessageRef::new(frame, &envelope));
        }
        match &first {
            None => first = Some((verdict, envelope)),
            Some(first) => assert_eq!(*first, (verdict, envelope), "{isa:?}: {shown}"),
        }
    }
}

/// The recorded members are those that serde_json finds, and determine the kind of the message.
fn agrees(message: MessageRef<'_>) {
    let text = std::str::from_utf8(message.bytes()).expect("accepted frames are UTF-8");
    let Some(members) = oracle::members(text) else {
        let is_object = text.trim_start().starts_with('{');
        let is_refused = message.fault() == Some(Fault::NotAnObject);
        assert!(is_object || is_refused, "{text}");
        return;
    };
    let (top, mut repeated) = noted(&members, TOP);
    let mut unreadable = false;
    let mut inner = [(); 2].map(|()| Found::new());
    for (found, (name, names)) in inner
        .iter_mut()
        .zip([("metadata", METADATA), ("error", ERROR)])
    {
        let Some(raw) = value(&top, name) else {
            continue;
        };
        // If serde_json cannot read a key, the members cannot be compared.
        let Some(members) = oracle::members(raw) else {
            unreadable |= raw.starts_with('{');
            continue;
        };
        let (members, again) = noted(&members, names);
        *found = members;
        repeated |= again;
    }
    if message.fault() == Some(Fault::EscapedMember) || (repeated && text.contains('\\')) {
        return;
    }
    let is_repeated = message.fault() == Some(Fault::DuplicateMember);
    if repeated {
        assert!(is_repeated, "{text}");
        return;
    }
    let [metadata, error] = inner;
    for ((name, field), raw) in top.iter().chain(&metadata).chain(&error) {
        if let Some(field) = field {
            assert_eq!(message.raw(*field), Some(*raw), "{name} in {text}");
        }
    }
    if is_repeated {
        // The repetition is in an object under a repeated name, or in one that serde_json could not read.
        return;
    }
    let starts = |name, first: char| value(&top, name).map(|raw| raw.starts_with(first));
    let is_request = starts("action", '"') == Some(true)
        && starts("status", '"').is_none()
        && starts("params", '{') != Some(false)
        && starts("tool", '"') != Some(false)
        && starts("context", '"') != Some(false)
        && starts("metadata", '{') != Some(false);
    assert_eq!(message.kind() == Kind::Request, is_request, "{text}");
    let is_error = value(&error, "type").is_some_and(|raw| raw.starts_with('"')) || unreadable;
    assert!(message.kind() != Kind::Error || is_error, "{text}");
    assert_eq!(
        message.kind() == Kind::Invalid,
        message.fault().is_some(),
        "{text}"
    );
}

/// The first member of each name, and whether a name is repeated.
fn noted<'a>(members: &[(String, &'a str)], names: &Names) -> (Found<'a>, bool) {
    let mut found = Found::new();
    let mut repeated = false;
    for (name, raw) in members {
        let Some(known) = names.iter().find(|(known, _)| known == name) else {
            continue;
        };
        match value(&found, known.0).is_some() {
            true => repeated = true,
            false => found.push((*known, raw)),
        }
    }
    (found, repeated)
}

fn value<'a>(found: &Found<'a>, name: &str) -> Option<&'a str> {
    let mut found = found.iter().filter(|((known, _), _)| *known == name);
    found.next().map(|(_, raw)| *raw)
}
