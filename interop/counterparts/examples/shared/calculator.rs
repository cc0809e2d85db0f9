//! Two tools, for servers on several carriers.

use mcpbolt::prelude::*;

pub struct Calculator;

#[tools]
impl Calculator {
    /// Calculate the sum of two numbers
    #[tool]
    fn sum(
        /// the left hand side number
        a: i32,
        b: i32,
    ) -> i64 {
        i64::from(a) + i64::from(b)
    }

    /// Calculate the difference of two numbers
    #[tool]
    fn sub(
        /// the left hand side number
        a: i32,
        /// the right hand side number
        b: i32,
    ) -> i64 {
        i64::from(a) - i64::from(b)
    }
}
