//! The schemas of a server's actions, as far as it has told them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use super::ActionFailure;
use crate::json::reader;
use crate::schema::Schema;

/// Compiled once, by the name of the action. What cannot be compiled is left to the server.
#[derive(Debug, Default)]
pub(in crate::client) struct Schemas(RwLock<HashMap<String, Arc<Schema>>>);

impl Schemas {
    pub fn learn(&self, actions: &BTreeMap<String, String>) {
        let compiled = actions.iter().filter_map(|(name, action)| {
            let schema = reader::find(action, "params_schema")?;
            Some((name.clone(), Arc::new(Schema::new(schema).ok()?)))
        });
        let compiled = compiled.collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = compiled;
    }

    /// # Errors
    /// The params do not fit what is known of the action.
    pub fn check(&self, name: &str, params: &str) -> Result<(), ActionFailure> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let schema = known.get(name).cloned();
        drop(known);
        let verdict = schema.map_or(Ok(()), |schema| schema.check(params));
        verdict.map_err(ActionFailure::Invalid)
    }
}
