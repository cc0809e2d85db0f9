//! Jobs that wait for a worker, in the order in which they are taken.

use std::collections::{HashMap, VecDeque};

use async_task::Runnable;

use crate::handler::{Job, Jobs};

/// Identifies the source of a job; [`NOBODY`] if the source is not known.
pub(super) type Tag = u64;

/// No known source: such jobs may use all threads.
pub(super) const NOBODY: Tag = 0;

/// Work to be run.
pub(super) enum Work {
    /// A job that was started and continues.
    Again(Runnable),
    /// Jobs that are created as they are taken; never empty in a queue.
    New(Jobs),
}

/// A job that a worker took.
pub(super) enum Taken {
    Again(Runnable),
    New(Job),
}

impl Work {
    /// Number of jobs, at most.
    fn len(&self) -> usize {
        match self {
            Self::Again(_) => 1,
            Self::New(jobs) => jobs.size_hint().1.unwrap_or(usize::MAX),
        }
    }
}

type Line = VecDeque<(Tag, Work)>;

#[derive(Default)]
pub(super) struct JobQueue {
    line: Line,
    /// Work of sources that had their share of the threads when it was looked at; never empty.
    held: HashMap<Tag, Line>,
    /// Whether one of these sources may have had one more thread at the last look.
    is_ready: bool,
}

impl JobQueue {
    /// Whether there is no work that may be taken.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty() && !self.is_ready
    }

    /// Whether more than one job may be waiting.
    pub fn is_line(&self) -> bool {
        self.line.len() > 1 || self.line.front().is_some_and(|(_, work)| work.len() > 1)
    }

    /// Number of waiting jobs, at most.
    pub fn waiting(&self) -> usize {
        let each = self.line.iter().map(|(_, work)| work.len());
        each.fold(usize::from(self.is_ready), usize::saturating_add)
    }

    /// Adds work of a source.
    pub fn push(&mut self, of: Tag, work: Work) {
        if work.len() > 0 {
            self.line.push_back((of, work));
        }
    }

    /// The next job, with its tag, of a source that `may` have one more thread. Work of other sources is
    /// held until they may.
    pub fn take(&mut self, may: impl Fn(Tag) -> bool) -> Option<(Tag, Taken)> {
        self.is_ready = false;
        if !self.held.is_empty()
            && let Some(taken) = self.take_held(&may)
        {
            return Some(taken);
        }
        while let Some((of, work)) = self.line.pop_front() {
            if of != NOBODY && (self.held.contains_key(&of) || !may(of)) {
                self.held.entry(of).or_default().push_back((of, work));
            } else if let Some(taken) = next(of, work, &mut self.line) {
                return Some((of, taken));
            }
        }
        None
    }

    #[cold]
    fn take_held(&mut self, may: &impl Fn(Tag) -> bool) -> Option<(Tag, Taken)> {
        while let Some(&of) = self.held.keys().find(|of| may(**of)) {
            let held = self.held.get_mut(&of)?;
            let taken = held.pop_front().and_then(|(_, work)| next(of, work, held));
            if held.is_empty() {
                self.held.remove(&of);
            }
            if let Some(taken) = taken {
                self.is_ready = self.held.keys().any(|of| may(*of));
                return Some((of, taken));
            }
        }
        None
    }
}

/// The next job of that work; what remains of it returns to the front of its queue.
fn next(of: Tag, work: Work, queue: &mut Line) -> Option<Taken> {
    match work {
        Work::Again(runnable) => Some(Taken::Again(runnable)),
        Work::New(mut jobs) => {
            let job = jobs.next()?;
            let rest = Work::New(jobs);
            if rest.len() > 0 {
                queue.push_front((of, rest));
            }
            Some(Taken::New(job))
        }
    }
}
