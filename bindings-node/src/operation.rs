//! Operations as numbers: of the registry's entries as they cross to JavaScript, and of a delegate's requests.

use mcpbolt::connection::Operation;

/// As `KINDS` in `face/entry.ts`.
const KINDS: u32 = 7;

/// A request for a list, if middleware is around the lists. No delegate has a tool with that number.
pub const LISTS: Operation = Operation::Own(Operation::MAX_NUMBER);

/// The number of an operation on an entry of the registry; `None` for any other.
pub fn pack(operation: Operation) -> Option<u32> {
    let (number, kind) = match operation {
        Operation::CallTool(number) => (number, 0),
        Operation::ReadResource(number) => (number, 1),
        Operation::ReadTemplate(number) => (number, 2),
        Operation::GetPrompt(number) => (number, 3),
        Operation::Complete => (0, 4),
        Operation::Extension(number) => (number, 5),
        LISTS => (0, 6),
        Operation::AwaitAdmission
        | Operation::Listen
        | Operation::AwaitTask
        | Operation::ServeBatch
        | Operation::Own(_) => {
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
        5 => Operation::Extension(number),
        _ => LISTS,
    }
}

/// How a request is passed to a delegate.
#[derive(Clone, Copy)]
pub enum Delegated {
    /// As a whole message.
    Whole,
    /// In parts: a call of the tool with that number.
    Tool(u32),
}

impl Delegated {
    pub fn operation(self) -> Operation {
        match self {
            Self::Whole => Operation::Own(0),
            Self::Tool(number) => Operation::Own(number + 1),
        }
    }

    /// How a request with that operation is passed, if a delegate took it.
    pub fn of(operation: Operation) -> Option<Self> {
        match operation {
            LISTS => None,
            Operation::Own(0) => Some(Self::Whole),
            Operation::Own(number) => Some(Self::Tool(number - 1)),
            _ => None,
        }
    }
}
