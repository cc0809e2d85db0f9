//! Requests for the kernel's server that the engine answers without the kernel: tools, resources and
//! prompts whose functions were passed over, and lists that the kernel has answered before.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use mcpbolt::connection::Operation;
use mcpbolt::connection::{Answer, Disposition, IncomingRequest};
use mcpbolt::json::reader;
use mcpbolt::mcp::{Method, Revision};
use pyo3::gc::{PyTraverseError, PyVisit};

use crate::target::Target;

/// Members of `_meta` that handlers depend on: the version of a component, and the trace to continue.
const UNUSUAL: [&str; 2] = ["fastmcp", "traceparent"];

/// The functions and lists that are answered without the kernel. Changes apply to all connections at once.
#[derive(Debug, Default)]
pub struct Natives(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    /// The functions by number; numbers are not reused.
    targets: Vec<Option<Arc<Target>>>,
    /// The numbers by method and by the name in the request.
    numbers: HashMap<Method, HashMap<Box<str>, u32>>,
    /// Results of lists, without the members that the engine adds, by method and revision.
    lists: HashMap<(Method, Revision), Arc<str>>,
}

impl Natives {
    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `target` answer requests of that method for that name from now on.
    pub fn offer(&self, method: Method, name: &str, target: Target) {
        let mut table = self.write();
        let number = table.targets.len() as u32;
        table.targets.push(Some(Arc::new(target)));
        let before = table
            .numbers
            .entry(method)
            .or_default()
            .insert(name.into(), number);
        let gone = table.forget(before);
        drop(table);
        // Dropping a function may run Python code, which may take the lock again.
        drop(gone);
    }

    /// Has the kernel answer requests of that method for that name again.
    pub fn withdraw(&self, method: Method, name: &str) {
        let mut table = self.write();
        let before = table
            .numbers
            .get_mut(&method)
            .and_then(|them| them.remove(name));
        let gone = table.forget(before);
        drop(table);
        drop(gone);
    }

    /// Answers requests of that method for the whole list with `result`, a JSON object; without a result
    /// the kernel answers them.
    pub fn show(&self, method: Method, revision: Revision, result: Option<&str>) {
        let lists = &mut self.write().lists;
        match result {
            Some(result) => drop(lists.insert((method, revision), result.into())),
            None => drop(lists.remove(&(method, revision))),
        }
    }

    /// Shows the garbage collector the functions, unless they are being changed.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_read() {
            Ok(table) => {
                let mut targets = table.targets.iter().flatten();
                targets.try_for_each(|target| Target::visit(target, visit))
            }
            Err(_) => Ok(()),
        }
    }

    /// The function with that number.
    pub fn target(&self, number: u32) -> Option<Arc<Target>> {
        self.read().targets.get(number as usize)?.clone()
    }

    /// Answers a request, or has it deferred to its function.
    ///
    /// # Errors
    /// Returns `answer` unused if the kernel must answer the request.
    pub fn take<'a>(
        &self,
        request: &IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        let Some(method) = request.method else {
            return Err(answer);
        };
        let table = self.read();
        let params = request.message.params();
        if let Some(list) = table.lists.get(&(method, request.revision)) {
            let is_plain = |params| reader::members(params).all(|(key, _)| key.raw() == "_meta");
            return match params.is_none_or(is_plain) {
                true => Ok(answer.result(|result| result.object(list))),
                false => Err(answer),
            };
        }
        match table.number(method, request) {
            Some(number) => Ok(Disposition::Deferred(Operation::CallTool(number))),
            None => Err(answer),
        }
    }
}

impl Table {
    fn forget(&mut self, number: Option<u32>) -> Option<Arc<Target>> {
        self.targets.get_mut(number? as usize)?.take()
    }

    /// The number of the function for a request, if the params have no unusual members.
    fn number(&self, method: Method, request: &IncomingRequest<'_>) -> Option<u32> {
        let numbers = self.numbers.get(&method)?;
        // In older revisions the kernel leaves members out of results, so it answers itself.
        if !request.revision.rules().structured_content {
            return None;
        }
        let message = &request.message;
        let name = match method {
            Method::ReadResource => message.uri()?,
            _ => message.name()?,
        };
        let number = *numbers.get(&*name)?;
        let usual = reader::members(message.params()?).all(|(key, value)| match key.raw() {
            "name" | "uri" => true,
            "arguments" => value.starts_with('{'),
            "_meta" => {
                let has = |name: &&str| reader::find(value, name).is_some();
                value.starts_with('{') && !UNUSUAL.iter().any(has)
            }
            _ => false,
        });
        usual.then_some(number)
    }
}
