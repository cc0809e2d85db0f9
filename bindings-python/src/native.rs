//! What is answered without the kernel although it is the kernel's: tools and the like whose
//! functions were handed over, and lists as they were answered before.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use mcpbolt::connection::{Answer, Disposition, Incoming};
use mcpbolt::handler::Operation;
use mcpbolt::json::reader;
use mcpbolt::mcp::{Method, Revision};

use crate::target::Target;

/// What there is of it. Changes reach every connection at once.
#[derive(Debug, Default)]
pub struct Natives(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    /// By number; none is given twice.
    targets: Vec<Option<Arc<Target>>>,
    /// Numbers by the name that a request calls for.
    numbers: HashMap<Method, HashMap<Box<str>, u32>>,
    /// Results without the engine's own part, by the revision they are written for.
    lists: HashMap<(Method, Revision), Arc<str>>,
}

impl Natives {
    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on `target` answers requests of that method for that name.
    pub fn offer(&self, method: Method, name: &str, target: Target) {
        let mut table = self.write();
        let number = table.targets.len() as u32;
        table.targets.push(Some(Arc::new(target)));
        let before = table
            .numbers
            .entry(method)
            .or_default()
            .insert(name.into(), number);
        table.forget(before);
    }

    /// The kernel answers them again.
    pub fn withdraw(&self, method: Method, name: &str) {
        let mut table = self.write();
        let before = table
            .numbers
            .get_mut(&method)
            .and_then(|them| them.remove(name));
        table.forget(before);
    }

    /// Answers requests of that method for the whole list with `result`, an object; without one the
    /// kernel answers them.
    pub fn show(&self, method: Method, revision: Revision, result: Option<&str>) {
        let lists = &mut self.write().lists;
        match result {
            Some(result) => drop(lists.insert((method, revision), result.into())),
            None => drop(lists.remove(&(method, revision))),
        }
    }

    /// That of a number.
    pub fn target(&self, number: u32) -> Option<Arc<Target>> {
        self.read().targets.get(number as usize)?.clone()
    }

    /// Answers a request, or has it deferred, if it can.
    ///
    /// # Errors
    /// The answer, untouched: it is the kernel's.
    pub fn take<'a>(
        &self,
        request: &Incoming<'_>,
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
            Some(number) => {
                let operation = Operation::CallTool(number);
                Ok(Disposition::Deferred(operation.to_target()))
            }
            None => Err(answer),
        }
    }
}

impl Table {
    fn forget(&mut self, number: Option<u32>) {
        if let Some(target) = number.and_then(|it| self.targets.get_mut(it as usize)) {
            *target = None;
        }
    }

    /// The number for a request of that method, if it holds nothing unusual.
    fn number(&self, method: Method, request: &Incoming<'_>) -> Option<u32> {
        let numbers = self.numbers.get(&method)?;
        // What the kernel of older revisions leaves out of results is its affair.
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
            "_meta" => value.starts_with('{') && !value.contains("\"fastmcp\""),
            _ => false,
        });
        usual.then_some(number)
    }
}
