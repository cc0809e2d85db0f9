use mcpbolt::prelude::*;

struct Counter(u32);

impl Counter {
    #[tool]
    fn count(&self) -> u32 {
        self.0
    }
}

fn main() {}
