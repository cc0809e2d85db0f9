//! Batches: requests that bring several requests and are answered as one.
//!
//! ```text
//!   the peer's request ─▶ Run ─▶ members, each served like a request of its own on the same stream
//!   its one answer     ◀─ Run ◀─ the members' answers, by index (their progress goes to the peer at once)
//! ```
//!
//! A run takes what happened to its members, and returns what to do next. How members are read and how
//! their answers are joined depends on the dialect: see [`BatchMembers`].

use std::fmt::Debug;
use std::time::Duration;

use super::keys::Member;
use crate::correlate::IncomingKey;
use crate::message::Message;

/// The requests of a batch, in one dialect.
pub(crate) trait BatchMembers: Debug + Send + Sync {
    /// Number of members.
    fn len(&self) -> usize;

    /// Whether each member begins only when the one before it is answered: then `Some`, with whether the
    /// batch goes on after an error. `None` if all begin at once.
    fn one_by_one(&self) -> Option<bool>;

    /// The request of a member.
    ///
    /// # Errors
    /// The answer to a member that cannot be served.
    fn request(&self, index: usize) -> Result<Message, MemberAnswer>;

    /// The answer to a member that was not answered within the batch's time limit.
    fn overdue(&self) -> MemberAnswer;

    /// The result of the whole batch, a JSON object, from the answers of all members that began.
    fn join(&self, answers: &[Option<MemberAnswer>]) -> String;
}

/// The answer to a member, as JSON without an envelope.
#[derive(Clone, Debug)]
pub(crate) struct MemberAnswer {
    pub is_error: bool,
    pub json: Vec<u8>,
}

/// The answer to a member that was just given.
#[derive(Debug)]
pub(crate) struct Finished {
    pub member: Member,
    pub answer: MemberAnswer,
}

/// A batch to be begun, for the request in flight that brought it.
#[derive(Debug)]
pub(crate) struct NewBatch {
    pub members: Box<dyn BatchMembers>,
    pub limit: Option<Duration>,
}

/// The next step of a batch.
#[allow(clippy::large_enum_variant, reason = "it lives for one step")]
pub(super) enum Step {
    /// Serve this member.
    Serve(usize, Message),
    /// Wait for answers.
    Wait,
    /// Answer the whole batch with this result.
    Done(String),
}

/// A batch in progress.
#[derive(Debug)]
pub(super) struct Run {
    outer: IncomingKey,
    members: Box<dyn BatchMembers>,
    answers: Vec<Option<MemberAnswer>>,
    /// The next member to begin.
    next: usize,
    is_overdue: bool,
}

impl Run {
    fn new(outer: IncomingKey, members: Box<dyn BatchMembers>) -> Self {
        Self {
            outer,
            answers: vec![None; members.len()],
            members,
            next: 0,
            is_overdue: false,
        }
    }

    /// The request that brought the batch.
    pub fn outer(&self) -> IncomingKey {
        self.outer
    }

    fn note(&mut self, index: usize, answer: MemberAnswer) {
        if let Some(known) = self.answers.get_mut(index) {
            known.get_or_insert(answer);
        }
    }

    /// Whether another member may begin.
    fn goes_on(&self) -> bool {
        let last = self.answers[..self.next].last();
        self.next < self.answers.len()
            && self.members.one_by_one().is_none_or(|after_errors| {
                last.is_none_or(|last| last.as_ref().is_some_and(|it| after_errors || !it.is_error))
            })
    }

    /// Returns the next step.
    pub fn step(&mut self) -> Step {
        while self.goes_on() && !self.is_overdue {
            let index = self.next;
            self.next += 1;
            match self.members.request(index) {
                Ok(message) => return Step::Serve(index, message),
                Err(answer) => self.note(index, answer),
            }
        }
        if self.is_overdue {
            self.next = self.answers.len();
            let open = self.answers.iter_mut().filter(|answer| answer.is_none());
            open.for_each(|answer| *answer = Some(self.members.overdue()));
        }
        let begun = &self.answers[..self.next];
        match begun.iter().all(Option::is_some) {
            true => Step::Done(self.members.join(begun)),
            false => Step::Wait,
        }
    }
}

/// The batches of one stream.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    runs: Vec<Run>,
    /// Answers of members that their batches have not taken yet.
    pub(super) finished: Vec<Finished>,
}

impl Batches {
    /// Whether there are none.
    #[inline]
    pub fn are_none(&self) -> bool {
        self.runs.is_empty()
    }

    pub fn begin(&mut self, outer: IncomingKey, members: Box<dyn BatchMembers>) {
        self.runs.push(Run::new(outer, members));
    }

    /// Notes the answer of a member.
    pub fn note(&mut self, member: Member, is_error: bool, json: Vec<u8>) {
        let answer = MemberAnswer { is_error, json };
        self.finished.push(Finished { member, answer });
    }

    /// Puts back a batch that waits for answers.
    pub(super) fn put_back(&mut self, run: Run) {
        self.runs.push(run);
    }

    /// Takes all batches out, to take their next steps.
    pub(super) fn take(&mut self) -> Vec<Run> {
        std::mem::take(&mut self.runs)
    }

    /// The time limit of a batch has passed.
    pub fn time_out(&mut self, outer: IncomingKey) {
        let mut runs = self.runs.iter_mut();
        if let Some(run) = runs.find(|run| run.outer == outer) {
            run.is_overdue = true;
        }
    }

    /// Gives `run` the answers of its members.
    pub(super) fn deliver(&mut self, run: &mut Run) {
        let outer = run.outer;
        for Finished { member, answer } in
            self.finished.extract_if(.., |it| it.member.outer == outer)
        {
            run.note(member.index, answer);
        }
    }
}
