//! Operations as numbers, which is how they cross to JavaScript.

use mcpbolt::connection::Operation;

/// As `KINDS` in `face/offer.ts`.
const KINDS: u32 = 6;

/// The number of an operation on an entry of the registry; `None` for any other.
pub fn pack(operation: Operation) -> Option<u32> {
    let (number, kind) = match operation {
        Operation::CallTool(number) => (number, 0),
        Operation::ReadResource(number) => (number, 1),
        Operation::ReadTemplate(number) => (number, 2),
        Operation::GetPrompt(number) => (number, 3),
        Operation::Complete => (0, 4),
        Operation::Extension(number) => (number, 5),
        Operation::Listen | Operation::AwaitTask | Operation::ServeBatch | Operation::Own(_) => {
            return None;
        }
    };
    Some(number * KINDS + kind)
}

/// The operation with that number.
pub fn unpack(packed: u32) -> Operation {
    let number = packed / KINDS;
    match packed % KINDS {
        0 => Operation::CallTool(number),
        1 => Operation::ReadResource(number),
        2 => Operation::ReadTemplate(number),
        3 => Operation::GetPrompt(number),
        4 => Operation::Complete,
        _ => Operation::Extension(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_survive_as_numbers() {
        for number in [0, 1, 77, Operation::MAX_NUMBER] {
            for operation in [
                Operation::CallTool(number),
                Operation::ReadResource(number),
                Operation::ReadTemplate(number),
                Operation::GetPrompt(number),
                Operation::Complete,
                Operation::Extension(number),
            ] {
                assert_eq!(pack(operation).map(unpack), Some(operation));
            }
        }
    }
}
