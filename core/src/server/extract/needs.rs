//! What handlers need of their server.

use std::any::{TypeId, type_name};

/// What a [`FromCall`](super::FromCall) needs of the server.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    states: Vec<(TypeId, &'static str)>,
    head: bool,
}

impl Needs {
    /// A [`State<T>`](super::State): the server is not built without it.
    pub fn state<T: 'static>(&mut self) {
        self.states.push((TypeId::of::<T>(), type_name::<T>()));
    }

    /// The [`Head`](crate::handler::Head) of the HTTP request: the server copies the headers of each.
    pub fn head(&mut self) {
        self.head = true;
    }

    pub(in crate::server) fn states(&self) -> &[(TypeId, &'static str)] {
        &self.states
    }

    pub(in crate::server) fn has_head(&self) -> bool {
        self.head
    }
}
