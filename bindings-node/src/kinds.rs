//! The kinds of the rows that cross to JavaScript and back, as numbers; `face/link.ts` has both lists in the same
//! order.

/// Kinds of the rows of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Inbound {
    Call,
    /// A call whose caller wants progress.
    CallWithProgress,
    Cancelled,
    Initialized,
    Opened,
    Answer,
    Failure,
    Progress,
    Notification,
    /// A line of a child's stderr.
    Line,
    Closed,
    /// The engine's thread has ended.
    Ended,
    /// A frame with its secrets masked; its target is 0 for a received one, 1 for a sent one.
    Traced,
    /// A stream is open; its text is its id.
    Listening,
    /// A request of the server; the target is a [`Topic`](crate::questions::Topic).
    Asked,
    /// The server cancelled its request.
    Withdrawn,
    RootsChanged,
    /// A client's connection has ended: the reason, and the client.
    Left,
    /// The head of the answer to an HTTP request; its target is the status.
    Head,
    /// A piece of the answer's body; its target is 1 for the last one.
    Piece,
    /// A request for a delegate, as a whole message.
    Request,
    /// A tool call for a delegate: its id and its `_meta`, and one entry of the arguments, `null` if it has
    /// none; the target is the tool's number.
    Invoke,
    /// Like `Invoke`, for a request without a handshake.
    InvokeAlone,
    /// A message on a wire. Over HTTP, its number names the sent message that it answers, or is 0.
    Frame,
    /// A frame that is not a message; why.
    Bad,
    /// There is room to write again: on a wire, or for the body of that HTTP request.
    Room,
    /// The position up to which the stream of a sent message over HTTP has been read.
    Position,
    /// The id of the session over HTTP.
    Session,
    /// The exchange of a sent message has ended; if the message was not delivered, why.
    Done,
    /// A part of an answer.
    Partial,
    /// Stdin has ended; requests in flight may still be answered.
    InputEnded,
}

/// Kinds of the rows of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Outbound {
    /// One block of text. In this and the next two, the last number is the tool's, counted from one, if it
    /// has an output schema.
    Text,
    /// Structured content, as JSON.
    Structured,
    /// A whole result object, as JSON.
    Object,
    /// The contents of a resource: a JSON array.
    Contents,
    /// A tool's failure, for the model.
    ToolError,
    /// A JSON-RPC error, its message and data as JSON; the numbers are its code, or 0 and its kind.
    Error,
    /// Progress; the numbers are the progress and the total (NaN if unknown).
    Progress,
    /// A log message; the numbers are the level, and the length of the logger's name before the JSON.
    Log,
    /// A sentence on the progress of the task that the call has become.
    TaskMessage,
    /// Any notification on behalf of the call; the number is the length of its method before its params.
    Notice,
    /// A part of the answer of an action, as JSON.
    Partial,
}

impl Outbound {
    const ALL: [Self; 11] = [
        Self::Text,
        Self::Structured,
        Self::Object,
        Self::Contents,
        Self::ToolError,
        Self::Error,
        Self::Progress,
        Self::Log,
        Self::TaskMessage,
        Self::Notice,
        Self::Partial,
    ];

    /// The kind with that number.
    pub fn at(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// Whether a row of this kind ends its call.
    pub fn is_answer(self) -> bool {
        self as u32 <= Self::Error as u32
    }
}
