//! The JSONTestSuite, every file as a whole text and as a member of a message, at sixteen
//! alignments. Read from `../shared` or `$MCPBOLT_SHARED`; skipped where that is absent.
#![allow(clippy::unwrap_used)]

use std::fs;

use mcpbolt::json;
use mcpbolt::message::{Envelope, Frame, Kind, decode};

/// What the RFC leaves to the parser, and what the engine does.
///
/// Numbers beyond any machine's range are grammar and pass through as text. So do escapes of
/// lone surrogates; only decoding such a string fails. Bytes that are not UTF-8, UTF-16 and byte
/// order marks are refused (line framing takes one mark off the head of a stream).
const CHOICES: [(&str, bool); 35] = [
    ("i_number_double_huge_neg_exp", true),
    ("i_number_huge_exp", true),
    ("i_number_neg_int_huge_exp", true),
    ("i_number_pos_double_huge_exp", true),
    ("i_number_real_neg_overflow", true),
    ("i_number_real_pos_overflow", true),
    ("i_number_real_underflow", true),
    ("i_number_too_big_neg_int", true),
    ("i_number_too_big_pos_int", true),
    ("i_number_very_big_negative_int", true),
    ("i_object_key_lone_2nd_surrogate", true),
    ("i_string_1st_surrogate_but_2nd_missing", true),
    ("i_string_1st_valid_surrogate_2nd_invalid", true),
    ("i_string_UTF-16LE_with_BOM", false),
    ("i_string_UTF-8_invalid_sequence", false),
    ("i_string_UTF8_surrogate_U+D800", false),
    ("i_string_incomplete_surrogate_and_escape_valid", true),
    ("i_string_incomplete_surrogate_pair", true),
    ("i_string_incomplete_surrogates_escape_valid", true),
    ("i_string_invalid_lonely_surrogate", true),
    ("i_string_invalid_surrogate", true),
    ("i_string_invalid_utf-8", false),
    ("i_string_inverted_surrogates_U+1D11E", true),
    ("i_string_iso_latin_1", false),
    ("i_string_lone_second_surrogate", true),
    ("i_string_lone_utf8_continuation_byte", false),
    ("i_string_not_in_unicode_range", false),
    ("i_string_overlong_sequence_2_bytes", false),
    ("i_string_overlong_sequence_6_bytes", false),
    ("i_string_overlong_sequence_6_bytes_null", false),
    ("i_string_truncated-utf-8", false),
    ("i_string_utf16BE_no_BOM", false),
    ("i_string_utf16LE_no_BOM", false),
    ("i_structure_500_nested_arrays", true),
    ("i_structure_UTF-8_BOM_empty_object", false),
];

const MAX_DEPTH: usize = 520;

#[test]
fn the_json_test_suite_is_decided_in_every_position() {
    let Some(dir) = crate::shared::path("testdata/json-test-suite/test_parsing") else {
        return;
    };
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 300, "only {} files", files.len());
    let mut choices = 0;
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let text = fs::read(&file).unwrap();
        let accepted = match name.as_bytes()[0] {
            b'y' => true,
            b'n' => false,
            _ => {
                choices += 1;
                CHOICES
                    .iter()
                    .find(|(choice, _)| *choice == name)
                    .unwrap()
                    .1
            }
        };
        assert_eq!(json::validate(&text, MAX_DEPTH).is_ok(), accepted, "{name}");
        embedded(name, &text, accepted);
    }
    assert_eq!(choices, CHOICES.len());
}

/// The text as a value inside `params` and inside `result`. Some refused texts become valid
/// there, because what is wrong with them is only what surrounds them: serde_json tells which.
fn embedded(name: &str, text: &[u8], accepted: bool) {
    let envelopes: [(&[u8], &[u8], Kind); 2] = [
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":",
            b"}}",
            Kind::Request,
        ),
        (
            b"{\"result\":{\"a\":[",
            b"]},\"id\":1,\"jsonrpc\":\"2.0\"}",
            Kind::Response,
        ),
    ];
    for (head, tail, kind) in envelopes {
        for shift in 0..16 {
            let mut block = vec![b' '; shift];
            block.extend([head, text, tail].concat());
            let len = block.len();
            let expected =
                accepted || serde_json::from_slice::<&serde_json::value::RawValue>(&block).is_ok();
            block.resize(len + mcpbolt::buffer::PADDING, b'}');
            let mut envelope = Envelope::new();
            let frame = Frame::new(&block, len).unwrap();
            let verdict = decode(frame, MAX_DEPTH, &mut envelope);
            assert_eq!(verdict.is_ok(), expected, "{name} at {shift}: {verdict:?}");
            if accepted {
                assert_eq!(envelope.kind(), kind, "{name}");
            }
        }
    }
}
