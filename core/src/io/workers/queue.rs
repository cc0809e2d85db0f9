//! Jobs that wait for a worker, in the order in which they are taken.

use std::collections::VecDeque;

use async_task::Runnable;

use crate::handler::{Job, Jobs};

/// Identifies the source of a job; [`NOBODY`] if the source is not known.
pub(super) type Tag = u64;

/// No known source: such jobs may use all threads.
pub(super) const NOBODY: Tag = 0;

/// Work to be run.
pub(super) struct Work {
    of: Tag,
    what: What,
}

enum What {
    /// A job that was started and continues.
    Again(Runnable),
    /// Jobs that are created as they are taken; never empty.
    New(Jobs),
}

/// A job that a worker took.
pub(super) enum Taken {
    Again(Runnable),
    New(Job),
}

impl Work {
    pub fn again(of: Tag, runnable: Runnable) -> Self {
        let what = What::Again(runnable);
        Self { of, what }
    }

    pub fn new(of: Tag, jobs: Jobs) -> Self {
        let what = What::New(jobs);
        Self { of, what }
    }

    /// Number of jobs, at most.
    pub fn len(&self) -> usize {
        match &self.what {
            What::Again(_) => 1,
            What::New(jobs) => jobs.size_hint().1.unwrap_or(usize::MAX),
        }
    }
}

#[derive(Default)]
pub(super) struct Queue {
    line: VecDeque<Work>,
    /// Work of a source that has its share of the threads; it waits until one of them is free.
    held: VecDeque<Work>,
    /// That source.
    hog: Tag,
}

impl Queue {
    /// Whether there is no work that may be taken.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Whether more than one job may be waiting.
    pub fn is_line(&self) -> bool {
        self.line.len() > 1 || self.line.front().is_some_and(|work| work.len() > 1)
    }

    /// Number of waiting jobs, at most.
    pub fn waiting(&self) -> usize {
        let each = self.line.iter().map(Work::len);
        each.fold(0, usize::saturating_add)
    }

    pub fn extend(&mut self, work: impl IntoIterator<Item = Work>) {
        let work = work.into_iter().filter(|work| work.len() > 0);
        self.line.extend(work);
    }

    /// The next job, with its tag. Jobs of `hog`, a source that has its share of the threads, are
    /// skipped.
    pub fn take(&mut self, hog: Tag) -> Option<(Tag, Taken)> {
        if hog != self.hog {
            self.hog = hog;
            self.line.append(&mut self.held);
        }
        while let Some(Work { of, what }) = self.line.pop_front() {
            if of == hog && of != NOBODY {
                self.held.push_back(Work { of, what });
                continue;
            }
            match what {
                What::Again(runnable) => return Some((of, Taken::Again(runnable))),
                What::New(mut jobs) => {
                    let Some(job) = jobs.next() else { continue };
                    let rest = Work::new(of, jobs);
                    if rest.len() > 0 {
                        self.line.push_front(rest);
                    }
                    return Some((of, Taken::New(job)));
                }
            }
        }
        None
    }
}
