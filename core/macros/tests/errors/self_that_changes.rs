use mcpbolt::prelude::*;

struct Counter(u32);

#[tools]
impl Counter {
    #[tool]
    fn count(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }
}

fn main() {}
