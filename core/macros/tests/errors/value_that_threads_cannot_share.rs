use std::cell::Cell;

use mcpbolt::prelude::*;

struct Counter(Cell<u32>);

#[tools]
impl Counter {
    #[tool]
    fn count(&self) -> u32 {
        self.0.replace(7)
    }
}

fn main() {}
