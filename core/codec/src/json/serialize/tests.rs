use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::*;

#[derive(serde::Serialize)]
struct Unit;

#[derive(serde::Serialize)]
struct New(u8);

#[derive(serde::Serialize)]
struct Pair(i8, char);

#[derive(serde::Serialize)]
enum Any<'a> {
    Unit,
    New(&'a str),
    Tuple(f32, Option<bool>),
    Struct { a: (), b: &'a [u16] },
}

#[derive(serde::Serialize)]
struct All<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<u8>,
    unit: (Unit, New, Pair, Option<u8>),
    any: [Any<'a>; 4],
    floats: [f64; 5],
    wide: (i128, u128, u64, i64),
    keys: (BTreeMap<u64, bool>, BTreeMap<bool, u8>, BTreeMap<char, u8>),
    value: serde_json::Value,
    raw: &'a RawValue,
    bytes: Bytes,
}

struct Bytes;

impl Serialize for Bytes {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_bytes(b"\x01\xff")
    }
}

#[test]
fn values_are_spelled_as_serde_json_spells_them() {
    let long = "plain \"text\"\n\u{1}数据 \\ ".repeat(40);
    let raw = r#"{"deep":[1e400,"\ud800"]}"#;
    let all = All {
        text: &long,
        absent: None,
        unit: (Unit, New(7), Pair(-1, '"'), None),
        any: [
            Any::Unit,
            Any::New("x"),
            Any::Tuple(0.1, Some(true)),
            Any::Struct { a: (), b: &[1, 2] },
        ],
        floats: [0.1, 1e300, -0.0, f64::NAN, f64::INFINITY],
        wide: (i128::MIN, u128::MAX, u64::MAX, i64::MIN),
        keys: (
            [(1, true), (2, false)].into(),
            [(true, 1)].into(),
            [('k', 1)].into(),
        ),
        value: serde_json::json!({"a": [null, {}, [], -1.5, "z"], "": 1}),
        raw: serde_json::from_str(raw).unwrap(),
        bytes: Bytes,
    };
    let mut out = Vec::new();
    append_value(&mut out, &all).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        serde_json::to_string(&all).unwrap()
    );
}

#[test]
fn raw_values_fit_on_one_line_and_odd_keys_are_refused() {
    let raw: &RawValue = serde_json::from_str("{\n \"a\": [1,\r\n 2]\n}").unwrap();
    let mut out = Vec::new();
    append_value(&mut out, raw).unwrap();
    assert_eq!(out, br#"{"a":[1,2]}"#);
    let odd: BTreeMap<Vec<u8>, u8> = [(vec![1], 2)].into();
    assert!(append_value(&mut Vec::new(), &odd).is_err());
    assert!(serde_json::to_string(&odd).is_err());
}
