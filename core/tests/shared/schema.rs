//! Checks the messages of a client and a server against the shapes of the revision.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use mcpbolt::connection::{Direction, Trace};
use mcpbolt::mcp::{Revision, Side};
use serde_json::{Value, json};

/// A trace of a client that checks what both sides say, and panics where it is not allowed; the
/// answers to requests that only a test asks, such as those with a wrong cursor, are errors and
/// have their own shape.
pub fn watch(revision: Revision) -> (Trace, Watched) {
    let watched = Watched(Arc::new(Mutex::new(Wire {
        schema: Schema::of(revision),
        asked: HashMap::new(),
        problems: Vec::new(),
        messages: 0,
    })));
    let wire = watched.clone();
    let trace = Trace::new(move |direction, line| {
        let sender = match direction {
            Direction::Out => "Client",
            Direction::In => "Server",
        };
        wire.0
            .lock()
            .unwrap()
            .see(sender, &serde_json::from_str(line).unwrap());
    });
    (trace, watched)
}

/// The messages so far.
#[derive(Clone)]
pub struct Watched(Arc<Mutex<Wire>>);

impl Watched {
    /// Panics if anything was said that the schema does not allow.
    pub fn assert_clean(&self) {
        let wire = self.0.lock().unwrap();
        assert!(wire.messages >= 2, "nothing was said");
        assert!(wire.problems.is_empty(), "{:#?}", wire.problems);
    }
}

struct Wire {
    schema: &'static Schema,
    /// The definitions of the requests under way, by sender and id.
    asked: HashMap<(bool, String), String>,
    problems: Vec<String>,
    messages: usize,
}

impl Wire {
    fn see(&mut self, sender: &str, message: &Value) {
        self.messages += 1;
        let is_client = sender == "Client";
        let id = message.get("id").map(Value::to_string);
        if message.get("method").is_some() {
            match self.schema.check_message(sender, message) {
                Err(problem) => self.problems.push(problem),
                Ok(name) => drop(id.map(|id| self.asked.insert((is_client, id), name))),
            }
            return;
        }
        let request = id.and_then(|id| self.asked.remove(&(!is_client, id)));
        let checked = match (message.get("result"), request) {
            (None, _) => self.schema.check_error(message),
            (Some(_), None) => Err(format!("an answer to nothing: {message}")),
            (Some(result), Some(request)) => self.schema.check_result(message, result, &request),
        };
        self.problems.extend(checked.err());
    }
}

/// The definitions of one revision.
struct Schema {
    document: Value,
    validators: Mutex<HashMap<String, Arc<jsonschema::Validator>>>,
}

impl Schema {
    /// Made once: the tests of one process share it.
    fn of(revision: Revision) -> &'static Self {
        static ALL: [OnceLock<Schema>; 5] = [const { OnceLock::new() }; 5];
        let number = Revision::ALL.iter().position(|one| *one == revision);
        ALL[number.unwrap()].get_or_init(|| Self {
            document: crate::shapes::schema(revision.name()),
            validators: Mutex::default(),
        })
    }

    fn definition(&self, name: &str) -> Option<&Value> {
        self.document["$defs"].get(name)
    }

    /// Checks a request or a notification; the name of its definition.
    fn check_message(&self, sender: &str, message: &Value) -> Result<String, String> {
        let kind = match message.get("id") {
            Some(_) => "Request",
            None => "Notification",
        };
        self.check(&format!("JSONRPC{kind}"), message)?;
        let method = message["method"].as_str().unwrap_or_default();
        let name = self.of_method(&format!("{sender}{kind}"), method);
        if name.is_none() && self.is_extension(method) {
            return Ok("Extension".to_owned());
        }
        let name = name.ok_or_else(|| format!("a {sender} may not send {method}"))?;
        self.check(&name, message).map(|()| name)
    }

    fn check_result(&self, message: &Value, result: &Value, request: &str) -> Result<(), String> {
        let name = self.first(&["JSONRPCResultResponse", "JSONRPCResponse"]);
        self.check(&name, message)?;
        if result["resultType"] == "input_required" {
            return self.check("InputRequiredResult", result);
        }
        match result.get("task") {
            Some(_) if request == "CallToolRequest" => {
                return self.check("CreateTaskResult", result);
            }
            _ if result["resultType"] == "task" => return self.check("Result", result),
            _ => {}
        }
        let stem = request.trim_end_matches("Request");
        let name = self.first(&[&format!("{stem}Result"), "EmptyResult"]);
        self.check(&name, result)
    }

    fn check_error(&self, message: &Value) -> Result<(), String> {
        let name = self.first(&["JSONRPCErrorResponse", "JSONRPCError"]);
        self.check(&name, message)
    }

    /// Whether a method is of an extension, official or a test's own, which the schema does not
    /// describe.
    fn is_extension(&self, method: &str) -> bool {
        let has_extensions = self.definition("InputRequiredResult").is_some();
        let prefixes = [
            "tasks/",
            "notifications/tasks",
            "skills/",
            "resources/directory/",
            "com.example/",
        ];
        has_extensions && prefixes.iter().any(|prefix| method.starts_with(prefix))
    }

    fn first(&self, names: &[&str]) -> String {
        let known = |name: &&&str| self.definition(name).is_some();
        (*names.iter().find(known).unwrap()).to_owned()
    }

    /// The member of `union` that has this method.
    fn of_method(&self, union: &str, method: &str) -> Option<String> {
        // A union of one may be a reference, or the definition itself.
        let definition = self.definition(union)?;
        let one = std::slice::from_ref(definition);
        let members = definition["anyOf"].as_array().map_or(one, Vec::as_slice);
        let mut names = members.iter().filter_map(|member| {
            let name = member["$ref"].as_str().unwrap_or(union);
            name.rsplit('/').next()
        });
        let has = |name: &&str| {
            let definition = &self.document["$defs"][*name];
            definition.pointer("/properties/method/const") == Some(&json!(method))
        };
        names.find(has).map(str::to_owned)
    }

    fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        let known = self.validators.lock().unwrap().get(name).cloned();
        let validator = known.unwrap_or_else(|| {
            let mut schema = self.document.clone();
            schema["$ref"] = json!(format!("#/$defs/{name}"));
            let made = Arc::new(jsonschema::validator_for(&schema).unwrap());
            let mut all = self.validators.lock().unwrap();
            all.insert(name.to_owned(), Arc::clone(&made));
            made
        });
        let checked = validator.validate(value);
        checked.map_err(|error| format!("{name}{}: {error}: {value}", error.instance_path()))
    }
}

/// The line's value. An id that only its sender's dialect can hold (a lone surrogate, say) is
/// echoed as it came: another stands for it here.
fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| {
        let id =
            mcpbolt::json::reader::find(line, "id").unwrap_or_else(|| panic!("{error}: {line}"));
        serde_json::from_str(&line.replacen(id, "0", 1)).unwrap()
    })
}

/// Panics if an engine of that side may not send that line in that revision. Parts that a test
/// makes up (its own methods, the members of its results) are not checked.
///
/// One exemption: `id: null` in an error that names no request, up to 2025-06-18, whose schemas
/// ask for an id that cannot be known (R-RPC-21); later revisions leave it out.
pub fn assert_may_send(side: Side, revision: Revision, line: &str) {
    let sender = match side {
        Side::Client => "Client",
        Side::Server => "Server",
    };
    let value = parse(line);
    let several = std::slice::from_ref(&value);
    let messages = value.as_array().map_or(several, Vec::as_slice);
    let schema = Schema::of(revision);
    let check = |message: &Value| match message {
        _ if message.get("method").is_some() => schema.check_message(sender, message).map(drop),
        _ if message.get("result").is_some() => {
            let name = schema.first(&["JSONRPCResultResponse", "JSONRPCResponse"]);
            schema.check(&name, message)
        }
        _ if message["id"].is_null() && revision <= Revision::V2025_06_18 => {
            let mut message = message.clone();
            message["id"] = json!(0);
            schema.check_error(&message)
        }
        _ => schema.check_error(message),
    };
    for message in messages {
        if let Err(problem) = check(message) {
            panic!("{}: {problem}", revision.name());
        }
    }
}
