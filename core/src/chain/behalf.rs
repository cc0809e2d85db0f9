//! Requests of this side's own, such as those for changes: on whose behalf they are made, which a server of this process is told.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::external::Isolation;
use super::params::Edit;
use super::routes::Routes;
use crate::connection::{Handle, Principal, RequestOptions, Response};
use crate::correlate::RequestKey;
use crate::error::RequestError;
use crate::mcp::Method;
use crate::message::Message;

/// On whose behalf this side asks a server for something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Behalf {
    /// A client, as it was verified; `None` if nobody verified it, so that a server which verifies its callers refuses it.
    Client(Option<Principal>),
    /// All clients that share the connection, or that nobody verified: the server is told of none, and grants what anybody may have.
    All,
}

impl Behalf {
    /// A client that is verified, or all.
    pub fn of(who: Option<Principal>) -> Self {
        match who {
            Some(_) => Self::Client(who),
            None => Self::All,
        }
    }

    /// For what all that use a connection have, such as the log level: on behalf of the client `who`, unless they are several.
    pub fn of_all(isolation: Isolation, who: impl FnOnce() -> Option<Principal>) -> Self {
        match isolation {
            Isolation::Shared => Self::All,
            Isolation::Session | Isolation::Principal => Self::of(who()),
        }
    }

    /// The client, if it is one.
    pub fn who(&self) -> Option<Principal> {
        match self {
            Self::Client(who) => who.clone(),
            Self::All => None,
        }
    }
}

/// A request of this side's own: resolves to the answer. Dropping it cancels the request.
pub(super) struct Asked {
    response: Response,
    routes: Arc<Routes>,
}

/// Sends a request of this side's own.
///
/// # Errors
/// As [`Handle::request`].
pub(super) fn ask(
    (far, routes): (&Handle, &Arc<Routes>),
    behalf: &Behalf,
    (method, params): (Method, &str),
    options: RequestOptions,
) -> Result<Asked, RequestError> {
    let request = (method.name(), Some(params));
    let response = far.forward(request, (options, true), |out, key, trace| {
        if let Behalf::Client(who) = behalf {
            routes.note_own(key, who.clone());
        }
        let edit = Edit {
            add: far.envelope(),
            trace,
            ..Edit::default()
        };
        edit.append_own(out, params);
    })?;
    let routes = routes.clone();
    Ok(Asked { response, routes })
}

impl Asked {
    pub fn key(&self) -> RequestKey {
        self.response.key()
    }
}

impl Future for Asked {
    type Output = Result<Message, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.response).poll(cx)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.routes.forget_own(self.response.key());
    }
}
