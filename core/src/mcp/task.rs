//! Tasks: calls that are answered later. The words that the form of 2025-11-25 and the extension of
//! later revisions have in common.

/// Which form of tasks a revision has. They are not compatible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskForm {
    /// The client asks for a task (2025-11-25).
    Core,
    /// The server makes a task where it sees fit: the extension [`extension::TASKS`](super::extension::TASKS).
    Extension,
}

/// Whether the calls of a tool may go on as tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// No.
    #[default]
    Forbidden,
    /// Those whose client can follow them.
    Optional,
    /// A call whose client cannot is refused.
    Required,
}

impl TaskSupport {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }

    /// The value of that word.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Forbidden, Self::Optional, Self::Required];
        all.into_iter().find(|support| support.name() == name)
    }
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// Under way.
    Working,
    /// It waits for an answer of the client.
    InputRequired,
    /// Done: there is a result.
    Completed,
    /// It failed.
    Failed,
    /// It was given up.
    Cancelled,
}

impl TaskStatus {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of that word.
    pub fn parse(name: &str) -> Option<Self> {
        let open = [Self::Working, Self::InputRequired];
        let ended = [Self::Completed, Self::Failed, Self::Cancelled];
        let mut all = open.into_iter().chain(ended);
        all.find(|status| status.name() == name)
    }

    /// Whether it stays as it is.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired)
    }
}
