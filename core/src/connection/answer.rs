//! Answers a request immediately, on the driver's thread.

use std::sync::Arc;

use super::batches::{Finished, MemberAnswer};
use super::call::Disposition;
use super::config::Config;
use super::framer::Framer;
use super::interceptor::Interceptor;
use super::keys::Member;
use super::observed::Undecided;
use super::observer::{RequestOutcome, RequestScope};
use super::principal::Principal;
use super::reply::{Closing, Encoder, Frame};
use super::result_writer::ResultWriter;
use crate::action::encode::ActionError;
use crate::buffer::Output;
use crate::mcp::profile::Failure;
use crate::mcp::{ErrorKind, Revision};
use crate::message::{Dialect, RequestId};

/// The facts on which the form of an answer depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub id: RequestId<'a>,
    pub dialect: Dialect,
    pub revision: Revision,
    pub closing: Closing,
    /// The place of the request in a batch, if it is a member of one.
    pub member: Option<Member>,
    /// The observer of the request, if it has one.
    pub observed: Option<&'a Undecided>,
}

impl<'a> Asked<'a> {
    /// A request of JSON-RPC that stands alone.
    pub fn rpc(id: RequestId<'a>, revision: Revision) -> Self {
        Self {
            id,
            dialect: Dialect::Rpc,
            revision,
            closing: Closing::default(),
            member: None,
            observed: None,
        }
    }
}

/// Where an answer goes.
#[derive(Debug)]
pub(super) struct Destination<'a> {
    pub output: &'a mut Output,
    pub framer: &'a Framer,
    /// The answers of members of batches.
    pub finished: &'a mut Vec<Finished>,
}

/// Answers one request immediately, on the driver's thread.
#[derive(Debug)]
pub struct Answer<'a> {
    to: Destination<'a>,
    asked: Asked<'a>,
    config: &'a Config,
    interceptor: Option<Arc<dyn Interceptor>>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(to: Destination<'a>, asked: Asked<'a>, config: &'a Config) -> Self {
        Self {
            to,
            asked,
            config,
            interceptor: None,
        }
    }
}

impl Answer<'_> {
    /// Sets the interceptor that inspects, and may change, what is answered here.
    #[must_use]
    pub fn intercepted(mut self, interceptor: Option<Arc<dyn Interceptor>>) -> Self {
        self.interceptor = interceptor;
        self
    }

    /// What surrounds the handler of the request, if its observer has something.
    pub(crate) fn scope(&self) -> Option<RequestScope> {
        self.asked.observed?.scope()
    }

    /// The sender of the request, if the request itself carried proof of it.
    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.interceptor.as_ref()?.principal()
    }

    /// Whether the stream carries this one exchange, as over HTTP, so that the transport can report how
    /// the request was answered (HTTP status).
    pub(crate) fn is_exchange(&self) -> bool {
        self.to.framer.framing == crate::frame::Framing::Whole
    }

    /// Answers with a result object.
    pub fn result(self, write: impl FnOnce(&mut ResultWriter<'_>)) -> Disposition {
        self.write(|encoder, out| encoder.result(out, write))
    }

    /// Answers with an error.
    pub fn error(self, kind: ErrorKind, message: &str, data: Option<&str>) -> Disposition {
        self.refuse(Failure {
            kind,
            about: "",
            why: message,
            data,
        })
    }

    /// Answers with an error whose [`Failure`] also names what the error is about.
    pub fn refuse(self, failure: Failure<'_>) -> Disposition {
        self.write(|encoder, out| encoder.failure(out, failure))
    }

    /// Answers an action with an error of the action dialect. For actions only.
    pub(crate) fn action_error(self, error: &ActionError<'_>) -> Disposition {
        self.write(|encoder, out| encoder.action_error(out, error))
    }

    /// Answers an action with `data`, a JSON object. For actions only.
    pub(crate) fn action_data(self, data: &str) -> Disposition {
        self.write(|encoder, out| encoder.action_data(out, data))
    }

    fn write(
        self,
        encode: impl FnOnce(&Encoder<'_>, &mut Vec<u8>) -> RequestOutcome,
    ) -> Disposition {
        let Asked {
            member, observed, ..
        } = self.asked;
        let encoder = Encoder {
            id: self.asked.id,
            dialect: self.asked.dialect,
            frame: member.map_or(Frame::Whole(self.asked.closing), |_| Frame::Bare),
            revision: self.asked.revision,
            config: self.config,
            interceptor: self.interceptor.as_deref(),
            #[cfg(feature = "server")]
            referring: None,
        };
        let Destination {
            output,
            framer,
            finished,
        } = self.to;
        match member {
            None => framer.append(output, |out| {
                let before = out.len();
                let outcome = encode(&encoder, out);
                if let Some(observed) = observed {
                    observed.end(outcome, out.len() - before);
                }
            }),
            Some(member) => {
                let mut json = Vec::new();
                let outcome = encode(&encoder, &mut json);
                if let Some(observed) = observed {
                    observed.end(outcome, json.len());
                }
                let is_error = outcome.is_error(encoder.dialect);
                let answer = MemberAnswer { is_error, json };
                finished.push(Finished { member, answer });
            }
        }
        Disposition::Answered
    }
}
