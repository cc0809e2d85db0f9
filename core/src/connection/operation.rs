//! The work that a deferred request waits for.

/// The remaining work for a request that was not answered at once.
///
/// The number of an entry of a server's registry counts the entries of its kind in the order of
/// registration; numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Call a tool.
    CallTool(u32),
    /// Read a resource.
    ReadResource(u32),
    /// Read a resource that matches a template.
    ReadTemplate(u32),
    /// Render a prompt.
    GetPrompt(u32),
    /// Complete an argument.
    Complete,
    /// Run an extension method.
    Extension(u32),
    /// Keep the stream of a `subscriptions/listen` open.
    Listen,
    /// Answer a `tasks/result` at the end of its task.
    AwaitTask,
    /// Serve the requests of a `batch/execute`.
    ServeBatch,
    /// Await what the decision needs, such as the verdict on the sender, then [decide again](super::Host::awaited).
    AwaitAdmission,
    /// A request of the host itself, under a number of its own.
    Own(u32),
}

impl Operation {
    /// The largest number of an entry. A binding may need the other three bits.
    pub const MAX_NUMBER: u32 = u32::MAX >> 3;
}
