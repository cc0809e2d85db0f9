//! Additions by the program: methods of extensions, the access guard, and the check of tool names
//! for approval and sanitising.

use super::{Registry, RegistryError, take};
use crate::handler::HandlerError;
use crate::mcp::Method;
use crate::server::access::{Access, Guard};

/// A method of an extension.
#[derive(Clone, Debug)]
pub(super) struct ExtensionMethod {
    extension: String,
}

impl Registry {
    /// Adds a method of an extension that [is declared](Self::add_extension). Returns its number
    /// (R-EXT-04).
    ///
    /// # Errors
    /// When the extension is not declared, or the name is empty or taken, for example by the
    /// protocol.
    pub fn add_method(&mut self, extension: &str, method: &str) -> Result<u32, RegistryError> {
        if !self.extensions.contains_key(extension) {
            return Err(RegistryError::Extension(extension.to_owned()));
        }
        if Method::parse(method).is_some() {
            return Err(RegistryError::Duplicate(method.to_owned()));
        }
        let number = take(&mut self.method_names, method, self.methods.next())?;
        self.methods.push(ExtensionMethod {
            extension: extension.to_owned(),
        });
        Ok(number)
    }

    /// Returns the number of a method and the extension that it belongs to.
    pub fn method(&self, name: &str) -> Option<(u32, &str)> {
        let number = *self.method_names.get(name)?;
        Some((number, &self.methods.get(number)?.extension))
    }

    /// Sets the guard to call before every tool call, read, prompt, completion and subscription:
    /// see [`Builder::guard`](crate::server::Builder::guard).
    pub fn set_guard(
        &mut self,
        guard: impl Fn(&Access<'_>) -> Result<(), HandlerError> + Send + Sync + 'static,
    ) {
        self.guard = Some(Guard::new(guard));
    }

    /// Asks the guard about an access. Without a guard every access is allowed.
    ///
    /// # Errors
    /// The guard's reason to refuse.
    pub(in crate::server) fn admits(&self, access: &Access<'_>) -> Result<(), HandlerError> {
        let guard = self.guard.as_ref();
        guard.map_or(Ok(()), |guard| guard.check(access))
    }

    pub(in crate::server) fn has_guard(&self) -> bool {
        self.guard.is_some()
    }

    /// Checks that a tool exists for each name, so that a mistyped name does not leave a tool
    /// unguarded. `*` stands for all tools. If the lists may change, every name is accepted.
    ///
    /// # Errors
    /// [`RegistryError::UnknownTool`].
    pub fn knows_tools<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), RegistryError> {
        let known = |name: &&str| *name == "*" || self.tool(name).is_some();
        let unknown = names.into_iter().find(|name| !known(name));
        match unknown.filter(|_| !self.may_change()) {
            Some(name) => Err(RegistryError::UnknownTool(name.to_owned())),
            None => Ok(()),
        }
    }
}
