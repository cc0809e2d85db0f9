use mcpbolt::prelude::*;

#[tool(readonly)]
fn one() {}

#[tool(read_only = "yes")]
fn two() {}

#[tool]
fn three(#[param(description = "x")] x: u8) {}

#[resource]
fn four() -> String {
    String::new()
}

fn main() {}
