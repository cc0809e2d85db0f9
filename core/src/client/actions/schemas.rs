//! The schemas of a server's actions, as far as they were fetched.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use super::failure::ActionFailure;
use crate::json::reader;
use crate::schema::Schema;

/// Compiled schemas by action name.
#[derive(Debug, Default)]
pub(in crate::client) struct ActionSchemas(RwLock<HashMap<String, Arc<KnownAction>>>);

/// A schema that does not compile is `None`: the server itself must check then.
#[derive(Debug)]
struct KnownAction {
    params: Option<Schema>,
    data: Option<Schema>,
}

impl ActionSchemas {
    pub fn learn(&self, actions: &BTreeMap<String, String>) {
        let compiled = actions.iter().map(|(name, action)| {
            let schema = |member| Schema::new(reader::find(action, member)?).ok();
            let known = KnownAction {
                params: schema("params_schema"),
                data: schema("data_schema"),
            };
            (name.clone(), Arc::new(known))
        });
        let compiled = compiled.collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = compiled;
    }

    fn of(&self, name: &str) -> Option<Arc<KnownAction>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(name).cloned()
    }

    /// # Errors
    /// The params do not fit the known schema of the action.
    pub fn check(&self, name: &str, params: &str) -> Result<(), ActionFailure> {
        match self.of(name).as_ref().and_then(|it| it.params.as_ref()) {
            Some(schema) => schema.check(params).map_err(ActionFailure::Invalid),
            None => Ok(()),
        }
    }

    /// # Errors
    /// The data of the answer do not fit the known schema (R-S14-05).
    pub fn check_data(&self, name: &str, data: &str) -> Result<(), ActionFailure> {
        match self.of(name).as_ref().and_then(|it| it.data.as_ref()) {
            Some(schema) => schema.check(data).map_err(ActionFailure::BadData),
            None => Ok(()),
        }
    }
}
