//! Trees and typed values: for which inputs and sizes simd-json is faster.

use std::hint::black_box;

use mcpbolt::json::materialise::{Materialiser, Tree};
use serde::Deserialize;
use serde_json::Value;

use super::Run;
use crate::corpus;
use crate::harness::Contender;

/// The members of a list of tools that a client needs.
#[derive(Debug, PartialEq, Deserialize)]
struct Listed {
    result: Tools,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Tools {
    tools: Vec<Tool>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    title: Option<String>,
    description: String,
    input_schema: Value,
}

pub(super) fn materialise(run: &mut Run) {
    for class in [
        "call150",
        "call880",
        "tools10k",
        "tools100k",
        "numeric100k",
        "cjk100k",
        "text1m",
    ] {
        let label = format!("materialise {class}");
        if !run.wants(&label) {
            continue;
        }
        let input = corpus::input(class).expect("a class");
        let text = std::str::from_utf8(input.bytes()).expect("UTF-8");
        let (mut tree, mut value, mut typed) = (
            Materialiser::new(),
            Materialiser::new(),
            Materialiser::new(),
        );
        let expected: Value = serde_json::from_str(text).expect("valid");
        assert_eq!(value.value::<Value>(text).expect("valid"), expected);
        let own = tree.value::<Tree<'_>>(text).expect("valid");
        assert_eq!(serde_json::to_value(&own).expect("a value"), expected);
        drop(own);
        let mut all = vec![
            Contender::new("mcpbolt Tree", || {
                tree.value::<Tree<'_>>(black_box(text)).is_ok()
            }),
            Contender::new("mcpbolt Value", || value.value::<Value>(black_box(text))),
            Contender::new("serde_json Tree", || {
                serde_json::from_str::<Tree<'_>>(black_box(text)).is_ok()
            }),
            Contender::new("serde_json Value", || {
                serde_json::from_str::<Value>(black_box(text))
            }),
        ];
        if class.starts_with("tools") {
            let listed: Listed = typed.value(text).expect("tools");
            assert_eq!(listed, serde_json::from_str(text).expect("tools"));
            all.push(Contender::new("mcpbolt typed", || {
                typed.value::<Listed>(black_box(text))
            }));
            all.push(Contender::new("serde_json typed", || {
                serde_json::from_str::<Listed>(black_box(text))
            }));
        }
        run.class(&label, text.len(), 1, all);
    }
}
