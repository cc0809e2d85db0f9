use mcpbolt::prelude::*;

struct Reviewer;

#[tools]
impl Reviewer {
    #[prompt]
    fn review(code: String) -> String {
        code
    }

    #[completion(revue, code)]
    fn one() -> [&'static str; 0] {
        []
    }

    #[completion(review, language)]
    fn two() -> [&'static str; 0] {
        []
    }
}

fn main() {}
