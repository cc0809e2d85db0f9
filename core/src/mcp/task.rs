//! Tasks: calls that are answered later. This module holds the terms that the tasks of 2025-11-25
//! and the later extension share.

/// The form of tasks in a revision. The forms are not compatible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskForm {
    /// The client asks for a task (2025-11-25).
    Core,
    /// The server decides to make a task: the extension
    /// [`extension::TASKS`](super::extension::TASKS).
    Extension,
}

/// Whether calls of a tool may continue as tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// Never.
    #[default]
    Forbidden,
    /// Yes, if the client supports tasks.
    Optional,
    /// Always; a call from a client without support for tasks is refused.
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

    /// The value with that name on the wire.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Forbidden, Self::Optional, Self::Required];
        all.into_iter().find(|support| support.name() == name)
    }
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// In progress.
    Working,
    /// Waiting for input from the client.
    InputRequired,
    /// Finished; the result is available.
    Completed,
    /// The task failed.
    Failed,
    /// The task was cancelled.
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

    /// The status with that name on the wire.
    pub fn parse(name: &str) -> Option<Self> {
        let open = [Self::Working, Self::InputRequired];
        let ended = [Self::Completed, Self::Failed, Self::Cancelled];
        let mut all = open.into_iter().chain(ended);
        all.find(|status| status.name() == name)
    }

    /// Whether the status is final.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired)
    }
}
