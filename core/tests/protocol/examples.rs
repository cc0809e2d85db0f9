//! The table of all examples of the documents, which is kept beside them.

use std::path::Path;

use serde_json::Value;

/// `corpus/EXAMPLES.md`, made of the examples themselves: each has an outcome, which the tests of the
/// profiles and of the action dialect hold it to.
#[test]
fn the_table_of_examples_is_that_of_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let read = |name: &str| std::fs::read_to_string(corpus.join(name)).unwrap();
    let parse = |name: &str| serde_json::from_str::<Vec<Value>>(&read(name)).unwrap();
    let mut rows = vec![];
    let mut row = |document: &Value, example: &Value, outcome: &Value, remark: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().replace('|', "\\|");
        assert!(!text(outcome).is_empty(), "{example}");
        let (document, example) = (text(document), text(example));
        let (outcome, remark) = (text(outcome), text(remark));
        rows.push(format!("| {document} | {example} | {outcome} | {remark} |"));
    };
    for example in parse("actions.json") {
        let section = format!("{}: ", example["section"].as_str().unwrap());
        let name = Value::from(section + example["name"].as_str().unwrap());
        row(
            &"actions".into(),
            &name,
            &example["carrier"],
            &example["note"],
        );
    }
    for conversation in parse("profiles.json") {
        for example in conversation["examples"].as_array().unwrap() {
            row(
                &conversation["profile"],
                &example["at"],
                &example["outcome"],
                &example["why"],
            );
        }
    }
    let head = "# Examples of the documents\n\nThe outcome of each example; `README.md` says what the outcomes mean.\n\n| document | example | outcome | remark |\n|---|---|---|---|\n";
    let table = format!("{head}{}\n", rows.join("\n"));
    let kept = read("EXAMPLES.md");
    assert!(kept == table, "corpus/EXAMPLES.md is to be:\n{table}");
}
