//! What a client and a server say to each other, held against the official schema of the revision.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mcpbolt::connection::{Direction, Trace};
use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

/// A trace of a client that checks what both sides say, and panics where it is not allowed; the
/// answers to requests that only a test asks, such as those with a wrong cursor, are errors and
/// have their own shape. `None` where the schemas are not at hand.
pub fn watch(revision: Revision) -> Option<(Trace, Watched)> {
    let path = crate::shared::path(&format!("spec/schema/{}/schema.json", revision.name()))?;
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let key = ["$defs", "definitions"]
        .into_iter()
        .find(|key| document.get(key).is_some());
    let watched = Watched(Arc::new(Mutex::new(Wire {
        key: key.unwrap(),
        document,
        validators: HashMap::new(),
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
    Some((trace, watched))
}

/// What was seen so far.
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
    document: Value,
    key: &'static str,
    validators: HashMap<String, jsonschema::Validator>,
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
        if let Some(method) = message.get("method").and_then(Value::as_str) {
            let kind = if id.is_some() {
                "Request"
            } else {
                "Notification"
            };
            self.check(&format!("JSONRPC{kind}"), message);
            let Some(name) = self.of_method(&format!("{sender}{kind}"), method) else {
                return self
                    .problems
                    .push(format!("a {sender} may not send {method}"));
            };
            self.check(&name, message);
            if let Some(id) = id {
                self.asked.insert((is_client, id), name);
            }
            return;
        }
        let request = id.and_then(|id| self.asked.remove(&(!is_client, id)));
        let Some(result) = message.get("result") else {
            let name = self.first(&["JSONRPCErrorResponse", "JSONRPCError"]);
            return self.check(&name, message);
        };
        let name = self.first(&["JSONRPCResultResponse", "JSONRPCResponse"]);
        self.check(&name, message);
        let Some(request) = request else {
            return self
                .problems
                .push(format!("an answer to nothing: {message}"));
        };
        if result["resultType"] == "input_required" {
            return self.check("InputRequiredResult", result);
        }
        let stem = request.trim_end_matches("Request");
        let name = self.first(&[&format!("{stem}Result"), "EmptyResult"]);
        self.check(&name, result);
    }

    fn first(&self, names: &[&str]) -> String {
        let known = |name: &&&str| self.document[self.key].get(**name).is_some();
        (*names.iter().find(known).unwrap()).to_owned()
    }

    /// The member of `union` that has this method.
    fn of_method(&self, name: &str, method: &str) -> Option<String> {
        let union = self.document[self.key].get(name)?;
        let has = |name: &&str| {
            self.document[self.key][*name].pointer("/properties/method/const")
                == Some(&json!(method))
        };
        // A union of one is written out.
        let one = [union.clone()];
        let members = union["anyOf"].as_array().map_or(&one[..], Vec::as_slice);
        let named = members
            .iter()
            .filter_map(|member| member["$ref"].as_str()?.rsplit('/').next());
        named.chain([name]).find(has).map(str::to_owned)
    }

    fn check(&mut self, name: &str, value: &Value) {
        if !self.validators.contains_key(name) {
            let mut schema = self.document.clone();
            schema["$ref"] = json!(format!("#/{}/{name}", self.key));
            let made = jsonschema::validator_for(&schema).unwrap();
            self.validators.insert(name.to_owned(), made);
        }
        if let Err(error) = self.validators[name].validate(value) {
            let at = error.instance_path().to_string();
            self.problems.push(format!("{name}{at}: {error}: {value}"));
        }
    }
}
