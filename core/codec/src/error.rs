//! The properties of every error: how much it ends, and its cause.

/// How much an error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One frame is bad; the next frame is unaffected.
    Message,
    /// One request fails; the connection stays open.
    Request,
    /// The connection ends.
    Connection,
}

/// The cause of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The program that uses the engine.
    Caller,
    /// The engine itself: a limit, a deadline, a shutdown.
    Engine,
    /// The peer.
    Peer,
    /// The operating system.
    Io,
}
