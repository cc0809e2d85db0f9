//! The arguments of a handler, declared one by one, and the schema that they make together.

use std::sync::Arc;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::argument::{Argument, InlineArgument, OfClient, Parameter};
use super::from_call::FromCall;
use super::given::{self, Received};
use super::needs::Needs;
use super::owner::Owner;
use crate::handler::HandlerError;
use crate::model::PromptArgument;

/// The declared arguments of a handler.
#[derive(Debug)]
pub struct Signature {
    schemas: SchemaGenerator,
    /// By position.
    parameters: Vec<Declared>,
    /// The schema of the type that takes all parameters together.
    all: Map<String, Value>,
    needs: Needs,
}

#[derive(Clone, Debug)]
struct Declared {
    name: &'static str,
    schema: Value,
    is_required: bool,
}

/// Takes one declared argument of each call.
#[derive(Clone, Debug)]
pub struct Taker<T> {
    take: fn(&Received<'_>, usize, Option<&str>) -> Result<T, HandlerError>,
    at: usize,
    /// The value of a missing parameter, JSON.
    default: Option<Arc<str>>,
}

// Without bounds: a type that cannot be an argument is one error, where it is declared.
impl<T> Taker<T> {
    /// Takes the argument.
    ///
    /// # Errors
    /// When the parameter is missing or of another type, or the call lacks the value.
    pub fn take(&self, call: &Received<'_>) -> Result<T, HandlerError> {
        (self.take)(call, self.at, self.default.as_deref())
    }
}

impl Signature {
    /// Begins with no arguments.
    #[expect(clippy::new_without_default, reason = "only the macros create it")]
    pub fn new() -> Self {
        Self {
            schemas: SchemaSettings::draft2020_12().into_generator(),
            parameters: Vec::new(),
            all: Map::new(),
            needs: Needs::default(),
        }
    }

    /// Declares the value whose method the handler is.
    pub fn belongs_to<T>(&mut self, owner: &Owner<T>) {
        if matches!(owner, Owner::OfSession(_)) {
            self.needs.session_values();
        }
    }

    /// Declares an argument of any kind.
    pub fn takes<T: Argument<Kind>, Kind>(
        &mut self,
        name: &'static str,
        description: &str,
    ) -> Taker<T> {
        Taker {
            take: T::take,
            at: T::declare(self, name, description),
            default: None,
        }
    }

    /// Declares a value of the call.
    pub fn takes_of_call<T: FromCall>(&mut self) -> Taker<T> {
        self.takes("", "")
    }

    /// Declares an argument of an inline tool.
    pub fn takes_inline<T: InlineArgument<Kind>, Kind>(
        &mut self,
        name: &'static str,
        description: &str,
    ) -> Taker<T> {
        self.takes(name, description)
    }

    /// Declares a parameter.
    pub fn takes_parameter<T: Parameter>(
        &mut self,
        name: &'static str,
        description: &str,
    ) -> Taker<T> {
        self.takes::<T, OfClient>(name, description)
    }

    /// Declares a parameter that has a default.
    pub fn takes_or<T: Parameter + Serialize>(
        &mut self,
        name: &'static str,
        description: &str,
        default: T,
    ) -> Taker<T> {
        let taker = self.takes_parameter(name, description);
        // A default that is not JSON, such as an infinite number, counts as no default.
        let default = serde_json::to_value(default).unwrap_or_default();
        let text = default.to_string().into();
        if let Some(declared) = self.parameters.get_mut(taker.at) {
            declared.is_required = false;
            declared.schema["default"] = default;
        }
        Taker {
            default: Some(text),
            ..taker
        }
    }

    pub(super) fn parameter<T: DeserializeOwned + JsonSchema>(
        &mut self,
        name: &'static str,
        description: &str,
    ) -> usize {
        let mut schema = self.schemas.subschema_for::<T>();
        // A schema that is `true` becomes an object, too.
        let members = schema.ensure_object();
        if !description.is_empty() {
            members.insert("description".into(), description.into());
        }
        self.parameters.push(Declared {
            name,
            schema: schema.to_value(),
            is_required: !given::may_be_missing::<T>(),
        });
        self.parameters.len() - 1
    }

    pub(super) fn all<T: JsonSchema>(&mut self) {
        let mut schema = T::json_schema(&mut self.schemas);
        self.all = std::mem::take(schema.ensure_object());
    }

    pub(super) fn needs_mut(&mut self) -> &mut Needs {
        &mut self.needs
    }

    /// The names of the parameters, by position.
    pub(in crate::server) fn names(&self) -> Arc<[&'static str]> {
        self.parameters.iter().map(|one| one.name).collect()
    }

    /// The features of the server that the arguments need.
    pub(in crate::server) fn needs(&self) -> &Needs {
        &self.needs
    }

    /// The parameters, those of a type that takes all of them first.
    fn all_parameters(&self) -> Vec<(String, Value, bool)> {
        let required = self.all.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let of_type = self.all.get("properties").and_then(Value::as_object);
        let of_type = of_type.into_iter().flatten();
        let of_type =
            of_type.map(|(name, schema)| (name.clone(), schema.clone(), is_required(name)));
        let own = self.parameters.iter().cloned();
        let own = own.map(|one| (one.name.to_owned(), one.schema, one.is_required));
        of_type.chain(own).collect()
    }

    /// The JSON Schema of all parameters: an object that needs no other document. Parameters are in the order
    /// of their declaration.
    pub(in crate::server) fn input_schema(&mut self) -> String {
        let definitions = self.schemas.take_definitions(true);
        let parameters = self.all_parameters();
        let required = parameters.iter().filter(|(.., is_required)| *is_required);
        let required: Vec<_> = required.map(|(name, ..)| name).collect();
        let properties = InOrder(
            parameters
                .iter()
                .map(|(name, schema, _)| (name, schema))
                .collect(),
        );
        let mut members = vec![("type", raw("object"))];
        for (name, value) in &self.all {
            if !["type", "properties", "required"].contains(&name.as_str()) {
                members.push((name, raw(value)));
            }
        }
        if !parameters.is_empty() {
            members.push(("properties", raw(properties)));
        }
        if !required.is_empty() {
            members.push(("required", raw(required)));
        }
        if !definitions.is_empty() {
            members.push(("$defs", raw(definitions)));
        }
        raw(InOrder(members)).get().to_owned()
    }

    /// The parameters as the arguments of a prompt.
    pub(in crate::server) fn prompt_arguments(&self) -> Vec<PromptArgument> {
        let argument = |(name, schema, required): (String, Value, bool)| PromptArgument {
            name,
            description: schema["description"].as_str().map(str::to_owned),
            required,
            ..PromptArgument::default()
        };
        self.all_parameters().into_iter().map(argument).collect()
    }
}

fn raw(value: impl Serialize) -> Box<RawValue> {
    // A schema has no value that JSON cannot write.
    serde_json::value::to_raw_value(&value).unwrap_or_default()
}

/// Members of an object in the order in which they are listed.
struct InOrder<K, V>(Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for InOrder<K, V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
