//! The features of a server that handlers need.

use std::any::{TypeId, type_name};

/// The features of the server that a [`FromCall`](super::FromCall) needs: states, the head of the request.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    states: Vec<(TypeId, &'static str)>,
    head: bool,
    session_values: bool,
}

impl Needs {
    /// A [`State<T>`](super::State): the server is not built without it.
    pub fn state<T: 'static>(&mut self) {
        self.states.push((TypeId::of::<T>(), type_name::<T>()));
    }

    /// The [`Head`](crate::handler::Head) of the HTTP request: the server copies the headers and extensions of each.
    pub fn head(&mut self) {
        self.head = true;
    }

    pub(super) fn session_values(&mut self) {
        self.session_values = true;
    }

    pub(in crate::server) fn has_session_values(&self) -> bool {
        self.session_values
    }

    pub(in crate::server) fn states(&self) -> &[(TypeId, &'static str)] {
        &self.states
    }

    pub(in crate::server) fn has_head(&self) -> bool {
        self.head
    }
}
