//! How a message that was posted to a session is answered.

use super::response;
use crate::io::http::message_bytes::MessageBytes;

/// The answer to a POST.
pub enum PostAnswer {
    /// There is none, and none will come.
    None,
    /// One message.
    Only(MessageBytes),
    /// Other messages beside the answer: a stream of events.
    Stream,
}

impl PostAnswer {
    /// Whether what the message asks for is granted, as far as this tells: an answer that comes after other messages is not
    /// waited for.
    pub fn is_granted(&self) -> bool {
        match self {
            Self::None => false,
            Self::Only(message) => !response::is_error(message),
            Self::Stream => true,
        }
    }
}
