//! A calculator, on stdio or at an address: `cargo run --example calculator -- tcp:127.0.0.1:9000`.

use mcpbolt::prelude::*;

/// Adds two numbers.
#[tool(read_only)]
fn add(a: f64, b: f64) -> f64 {
    a + b
}

/// Divides two numbers.
#[tool(read_only)]
fn divide(
    a: f64,
    /// The divisor, which is not zero.
    b: f64,
) -> Result<f64, &'static str> {
    if b == 0.0 {
        return Err("b must not be zero");
    }
    Ok(a / b)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("calculator", "1.0.0").with(handlers![add, divide]);
    Ok(server.build()?.run()?)
}
