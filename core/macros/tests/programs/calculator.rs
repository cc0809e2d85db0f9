//! A calculator of plain functions.

use mcpbolt::prelude::*;

/// Adds two numbers.
#[tool(read_only, open_world = false)]
pub fn add(a: f64, b: f64) -> f64 {
    a + b
}

/// Divides two numbers.
#[tool(inline)]
fn divide(
    /// The dividend.
    a: f64,
    /// The divisor; not zero.
    #[param(default = 1.0)]
    b: f64,
) -> Result<f64, &'static str> {
    match b {
        0.0 => Err("b is zero"),
        _ => Ok(a / b),
    }
}

pub fn server() -> Result<Server, Box<dyn std::error::Error>> {
    Ok(Server::builder("calculator", "1.0.0")
        .with(handlers![add, divide])
        .build()?)
}

#[test]
fn functions_stay_callable() {
    assert_eq!(add(1.0, 2.0), 3.0);
    assert_eq!(divide(1.0, 0.0), Err("b is zero"));
}
