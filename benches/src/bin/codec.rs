//! The codec beside other libraries: `codec [--json FILE] [--publish ROOT] [--rounds N] [CLASS…]`.
//!
//! With `--publish`, the figures of a run over all classes are written to the plot and the table in the
//! README of the repository at ROOT.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measuring program stops at the first surprise"
)]

use mcpbolt::scan::Isa;
use mcpbolt_benches::classes::Run;
use mcpbolt_benches::{count, harness, report};

fn main() {
    let mut run = Run {
        rounds: 41,
        only: Vec::new(),
        rows: Vec::new(),
    };
    let (mut json, mut publish) = (None, None);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => json = args.next(),
            "--publish" => publish = args.next(),
            "--rounds" => run.rounds = args.next().and_then(|n| n.parse().ok()).expect("a number"),
            class => run.only.push(class.to_owned()),
        }
    }
    println!("kernels: {:?} by default, of {:?}", Isa::chosen(), Isa::ALL);
    run.all();
    if json.is_some() {
        count_instructions(&mut run);
    }
    if let Some(path) = json {
        harness::save(&path, &run.rows).expect("the file can be written");
    }
    if let Some(root) = publish {
        report::publish(root.as_ref(), &run.rows).expect("the repository can be written");
    }
}

/// Counts instructions of the engine's own decoding, for classes that run quickly under callgrind.
fn count_instructions(run: &mut Run) {
    let mut classes: Vec<String> = Vec::new();
    for row in &mut run.rows {
        let fresh = !classes.contains(&row.class);
        if fresh && row.bytes < 200_000 && mcpbolt_benches::corpus::input(&row.class).is_some() {
            row.instructions = count::instructions(&row.class);
        }
        classes.push(row.class.clone());
    }
}
