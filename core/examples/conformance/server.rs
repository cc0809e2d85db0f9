//! A server with everything that the official conformance suite asks for.

use std::time::Duration;

use mcpbolt::mcp::{ErrorKind, LogLevel, TaskSupport};
use mcpbolt::model::{Elicitation, Elicited, Role, Sampling};
use mcpbolt::server::schemars::JsonSchema;
use mcpbolt::server::serde::Deserialize;
use mcpbolt::server::{
    Arguments, Builder, Content, Context, HandlerError, Prompt, PromptResult, Resource,
    ResourceContents, Server, Skill, Tool, ToolResult,
};
use serde_json::{Value, json};

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A moment of silence.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

type Outcome<T> = Result<T, HandlerError>;

fn bytes(base64: &str) -> Vec<u8> {
    use base64::Engine as _;
    let decoded = base64::engine::general_purpose::STANDARD.decode(base64);
    decoded.unwrap_or_default()
}

fn image() -> Content {
    Content::image(bytes(PNG), "image/png")
}

fn embedded(uri: &str) -> Content {
    let mut contents = ResourceContents::text(uri, "This is an embedded resource content.");
    contents.mime_type = Some("text/plain".into());
    Content::resource(contents)
}

fn blocks(content: Vec<Content>) -> ToolResult {
    ToolResult {
        content,
        ..ToolResult::default()
    }
}

fn form(message: &str, properties: Value, required: &[&str]) -> Elicitation {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Elicitation::form(message, schema)
}

fn name_form(message: &str) -> Elicitation {
    form(message, json!({"name": {"type": "string"}}), &["name"])
}

/// The value that the user filled in under that name.
fn filled(elicited: &Elicited, field: &str) -> String {
    match elicited {
        Elicited::Accepted(content) => match content.get(field) {
            Some(Value::String(text)) => text.clone(),
            other => format!("{other:?}"),
        },
        Elicited::Declined => "declined".into(),
        Elicited::Cancelled => "cancelled".into(),
    }
}

/// A question whose state the suite hands back, as it came or tampered with.
async fn confirmed(_: Arguments, context: Context) -> Outcome<&'static str> {
    let fields = json!({"ok": {"type": "boolean"}});
    let question = form("Please confirm", fields, &["ok"]);
    context.named("confirm").elicit(question).await?;
    Ok("state-ok")
}

/// The server; whether it speaks the action dialect, too.
///
/// # Errors
/// None, as its parts fit together.
pub fn server(actions: bool) -> Result<Server, Box<dyn std::error::Error + Send + Sync>> {
    let server = Server::builder("mcpbolt-conformance", env!("CARGO_PKG_VERSION"))
        .instructions("Every feature that the conformance suite looks at.")
        .actions(actions)
        .list_changes()
        .subscriptions();
    let server = offers(questions(tasks(contents(server)))).build()?;
    let changing = server.clone();
    server.change(|offer| changes(offer, &changing))?;
    Ok(server)
}

/// Tools of which each gives back one kind of thing.
fn contents(server: Builder) -> Builder {
    let tool = |name: &str, text: &str| Tool::new(name).description(text);
    server
        .tool(tool("test_simple_text", "Gives a sentence."), |_: Arguments, _| async {
            "This is a simple text response for testing."
        })
        .tool(tool("test_image_content", "Gives an image."), |_: Arguments, _| async {
            blocks(vec![image()])
        })
        .tool(tool("test_audio_content", "Gives a sound."), |_: Arguments, _| async {
            blocks(vec![Content::audio(bytes(WAV), "audio/wav")])
        })
        .tool(tool("test_embedded_resource", "Gives a resource."), |_: Arguments, _| async {
            blocks(vec![embedded("test://embedded-resource")])
        })
        .tool(tool("test_multiple_content_types", "Gives three things."), |_: Arguments, _| async {
            let text = Content::text("Multiple content types test:");
            blocks(vec![text, image(), embedded("test://mixed-content-resource")])
        })
        .tool(tool("test_error_handling", "Fails."), |_: Arguments, _| async {
            ToolResult::error("This tool intentionally returns an error for testing")
        })
        .tool(tool("test_tool_with_logging", "Logs."), |_: Arguments, context: Context| async move {
            for step in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                context.log(LogLevel::Info, None, &json!(step));
                context.sleep(Duration::from_millis(50)).await;
            }
            "logged"
        })
        .tool(tool("test_logging_tool", "Logs, for who wants it."), |_: Arguments, context: Context| async move {
            context.log(LogLevel::Info, None, &json!("at work"));
            "logged"
        })
        .tool(tool("test_tool_with_progress", "Reports progress."), |_: Arguments, context: Context| async move {
            for step in [0.0, 50.0, 100.0] {
                context.progress(step, Some(100.0), None);
                context.sleep(Duration::from_millis(50)).await;
            }
            "done"
        })
        .tool(
            tool("json_schema_2020_12_tool", "Has a schema with everything.").input_schema(json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {
                    "street": {"type": "string"}, "city": {"type": "string"}}}},
                "properties": {
                    "name": {"type": "string"},
                    "address": {"$ref": "#/$defs/address"},
                    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                    "phone": {"type": "string"},
                    "email": {"type": "string"},
                },
                "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
                "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
                "then": {"required": ["phone"]},
                "else": {"required": ["email"]},
                "additionalProperties": false,
            })),
            |arguments: Arguments, _| async move { arguments.0.into_string() },
        )
        .tool(
            tool("test_custom_header", "Has an argument that travels in a header.").input_schema(json!({
                "type": "object",
                "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
            })),
            |arguments: Arguments, _| async move { arguments.0.into_string() },
        )
}

/// Tools that ask the client.
fn questions(server: Builder) -> Builder {
    let tool = |name: &str| Tool::new(name).description("Asks the client.");
    server
        .tool(
            tool("test_sampling"),
            |arguments: Arguments, context: Context| async move {
                let arguments: Value = serde_json::from_str(&arguments.0)?;
                let prompt = arguments["prompt"].as_str().unwrap_or("?");
                let said = context.sample(Sampling::user(prompt, 100)).await?;
                Outcome::Ok(format!("LLM response: {}", said.to_text()))
            },
        )
        .tool(
            tool("test_elicitation"),
            |arguments: Arguments, context: Context| async move {
                let arguments: Value = serde_json::from_str(&arguments.0)?;
                let message = arguments["message"].as_str().unwrap_or("?");
                let fields = json!({"username": {"type": "string"}, "email": {"type": "string"}});
                let answer = context
                    .elicit(form(message, fields, &["username", "email"]))
                    .await?;
                Outcome::Ok(format!("User response: {answer:?}"))
            },
        )
        .tool(
            tool("test_missing_capability"),
            |_: Arguments, context: Context| async move {
                context.require(&["sampling"])?;
                Outcome::Ok("the client has a model")
            },
        )
        .tool(
            tool("test_elicitation_sep1034_defaults"),
            |_: Arguments, context: Context| async move {
                let fields = json!({
                    "name": {"type": "string", "default": "John Doe"},
                    "age": {"type": "integer", "default": 30},
                    "score": {"type": "number", "default": 95.5},
                    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                    "verified": {"type": "boolean", "default": true},
                });
                let answer = context.elicit(form("Is this right?", fields, &[])).await?;
                Outcome::Ok(format!("{answer:?}"))
            },
        )
        .tool(
            tool("test_elicitation_sep1330_enums"),
            |_: Arguments, context: Context| async move {
                let titled = json!([
                    {"const": "value1", "title": "First Option"},
                    {"const": "value2", "title": "Second Option"},
                    {"const": "value3", "title": "Third Option"},
                ]);
                let fields = json!({
                    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                    "titledSingle": {"type": "string", "oneOf": titled},
                    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"]},
                    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
                    "titledMulti": {"type": "array", "items": {"anyOf": titled}},
                });
                let answer = context.elicit(form("Choose", fields, &[])).await?;
                Outcome::Ok(format!("{answer:?}"))
            },
        )
        .tool(
            tool("test_reconnection"),
            |_: Arguments, context: Context| async move {
                context.release_stream(Duration::from_millis(500));
                context.sleep(Duration::from_millis(100)).await;
                Outcome::Ok("the client came back")
            },
        )
        .tool(
            tool("test_streaming_elicitation"),
            |_: Arguments, context: Context| async move {
                let answer = context.elicit(name_form("Who are you?")).await?;
                Outcome::Ok(filled(&answer, "name"))
            },
        )
        .tool(
            tool("test_input_required_result_elicitation"),
            |_: Arguments, context: Context| async move {
                let answer = context
                    .named("user_name")
                    .elicit(name_form("What is your name?"))
                    .await?;
                Outcome::Ok(format!("Hello, {}!", filled(&answer, "name")))
            },
        )
        .tool(
            tool("test_input_required_result_sampling"),
            |_: Arguments, context: Context| async move {
                let question = Sampling::user("What is the capital of France?", 100);
                Outcome::Ok(
                    context
                        .named("capital_question")
                        .sample(question)
                        .await?
                        .to_text(),
                )
            },
        )
        .tool(
            tool("test_input_required_result_list_roots"),
            |_: Arguments, context: Context| async move {
                let roots = context.named("client_roots").roots().await?;
                Outcome::Ok(format!("{roots:?}"))
            },
        )
        .tool(tool("test_input_required_result_request_state"), confirmed)
        .tool(tool("test_input_required_result_tampered_state"), confirmed)
        .tool(
            tool("test_input_required_result_multiple_inputs"),
            |_: Arguments, context: Context| async move {
                let (user, model, roots) = (
                    context.named("user_name"),
                    context.named("greeting"),
                    context.named("client_roots"),
                );
                let (name, greeting, roots) = futures::join!(
                    user.elicit(name_form("What is your name?")),
                    model.sample(Sampling::user("Generate a greeting", 50)),
                    roots.roots(),
                );
                Outcome::Ok(format!(
                    "{} {} {:?}",
                    filled(&name?, "name"),
                    greeting?.to_text(),
                    roots?
                ))
            },
        )
        .tool(
            tool("test_input_required_result_multi_round"),
            |_: Arguments, context: Context| async move {
                let name = context
                    .named("step1")
                    .elicit(name_form("Step 1: What is your name?"))
                    .await?;
                let fields = json!({"color": {"type": "string"}});
                let colour = form("Step 2: What is your favorite color?", fields, &["color"]);
                let colour = context.named("step2").elicit(colour).await?;
                Outcome::Ok(format!(
                    "{} likes {}",
                    filled(&name, "name"),
                    filled(&colour, "color")
                ))
            },
        )
        .tool(
            tool("test_input_required_result_capabilities"),
            |_: Arguments, context: Context| async move {
                if context.require(&["elicitation"]).is_ok() {
                    let answer = context.elicit(name_form("Who are you?")).await?;
                    return Outcome::Ok(filled(&answer, "name"));
                }
                Ok(context
                    .sample(Sampling::user("Who am I?", 10))
                    .await?
                    .to_text())
            },
        )
        .prompt(
            Prompt::new("test_input_required_result_prompt").description("Asks the user first."),
            |_, context: Context| async move {
                let fields = json!({"context": {"type": "string"}});
                let question = form("What context should the prompt use?", fields, &["context"]);
                let answer = context.named("user_context").elicit(question).await?;
                Ok(PromptResult::user(filled(&answer, "context")))
            },
        )
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Greet {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Compute {
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    label: String,
}

/// Tools whose calls go on as tasks.
fn tasks(server: Builder) -> Builder {
    let tool = |name: &str| {
        Tool::new(name)
            .description("A long job.")
            .task_support(TaskSupport::Optional)
    };
    let required = |name: &str| tool(name).task_support(TaskSupport::Required);
    server
        .tool(
            Tool::new("greet").description("Greets."),
            |greet: Greet, _| async move { format!("Hello, {}!", greet.name) },
        )
        .tool(
            tool("slow_compute"),
            |job: Compute, context: Context| async move {
                if job.seconds > 0.0 {
                    context.begin_task();
                    context.sleep(Duration::from_secs_f64(job.seconds)).await;
                }
                format!("{} computed", job.label)
            },
        )
        .tool(
            required("failing_job"),
            |_: Arguments, context: Context| async move {
                context.begin_task();
                ToolResult::error("this job always fails")
            },
        )
        .tool(
            tool("protocol_error_job"),
            |_: Arguments, context: Context| async move {
                context.begin_task();
                Outcome::<&str>::Err(HandlerError::protocol(
                    ErrorKind::Internal,
                    "the job broke down",
                ))
            },
        )
        .tool(
            tool("confirm_delete"),
            |_: Arguments, context: Context| async move {
                context.begin_task();
                let fields = json!({"confirm": {"type": "boolean"}});
                let answer = context
                    .elicit(form("Really delete it?", fields, &["confirm"]))
                    .await?;
                Outcome::Ok(format!("{answer:?}"))
            },
        )
        .tool(
            tool("multi_input"),
            |_: Arguments, context: Context| async move {
                context.begin_task();
                let (first, second) = futures::join!(
                    context.elicit(name_form("First?")),
                    context.elicit(name_form("Second?")),
                );
                Outcome::Ok(format!(
                    "{} {}",
                    filled(&first?, "name"),
                    filled(&second?, "name")
                ))
            },
        )
        .tool(
            required("test_tool_with_task"),
            |_: Arguments, context: Context| async move {
                let answer = context
                    .named("user_name")
                    .elicit(name_form("What is your name?"))
                    .await?;
                context.begin_task();
                Outcome::Ok(format!("Hello, {}!", filled(&answer, "name")))
            },
        )
}

/// Resources, prompts, completion and a skill.
fn offers(server: Builder) -> Builder {
    let text = |uri: String, text: &str| {
        let mut contents = ResourceContents::text(uri, text);
        contents.mime_type = Some("text/plain".into());
        contents
    };
    let manifest = "---\nname: conformance\ndescription: Runs the suite\n---\nRun it.\n";
    let server = match Skill::new(manifest) {
        Ok(skill) => server.skill(skill.file("references/SUITE.md", "text/markdown", "# Suite\n")),
        Err(_) => server,
    };
    server
        .resource(
            Resource::new("test://static-text", "static-text")
                .description("Text.")
                .mime_type("text/plain"),
            move |uri, _| async move {
                Ok(text(
                    uri,
                    "This is the content of the static text resource.",
                ))
            },
        )
        .resource(
            Resource::new("test://static-binary", "static-binary")
                .description("An image.")
                .mime_type("image/png"),
            |uri, _| async move { Ok(ResourceContents::blob(uri, bytes(PNG), "image/png")) },
        )
        .resource(
            Resource::new("test://watched-resource", "watched")
                .description("Changes.")
                .mime_type("text/plain"),
            move |uri, _| async move { Ok(text(uri, "watched")) },
        )
        .resource_template(
            Resource::new("test://template/{id}/data", "template").description("Data by id."),
            move |uri, variables, _| async move {
                Ok(text(uri, &format!("Data for ID: {}", variables["id"])))
            },
        )
        .prompt(
            Prompt::new("test_simple_prompt").description("A sentence."),
            |_, _| async { Ok(PromptResult::user("This is a simple prompt for testing.")) },
        )
        .prompt(
            Prompt::new("test_prompt_with_arguments")
                .description("Two arguments.")
                .argument("arg1", "The first", true)
                .argument("arg2", "The second", true),
            |arguments, _| async move {
                let text = format!(
                    "Prompt with arguments: arg1='{}', arg2='{}'",
                    arguments["arg1"], arguments["arg2"]
                );
                Ok(PromptResult::user(text))
            },
        )
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource")
                .description("A resource.")
                .argument("resourceUri", "Which one", true),
            |arguments, _| async move {
                let messages = vec![(Role::User, embedded(&arguments["resourceUri"]))];
                Ok(PromptResult {
                    description: None,
                    messages,
                })
            },
        )
        .prompt(
            Prompt::new("test_prompt_with_image").description("An image."),
            |_, _| async {
                let messages = vec![(Role::User, image())];
                Ok(PromptResult {
                    description: None,
                    messages,
                })
            },
        )
        .completion(|request, _| async move {
            let all = ["test", "testing"].map(str::to_owned);
            Ok(all
                .into_iter()
                .filter(|one| one.starts_with(&request.value))
                .collect::<Vec<_>>())
        })
}

/// Tools that change what is offered.
fn changes(offer: Builder, server: &Server) -> Builder {
    let (tools, prompts) = (server.clone(), server.clone());
    let nothing = |_: Arguments, _| async { "nothing" };
    let tool = |name: &str| Tool::new(name).description("Changes what is offered.");
    offer
        .tool(tool("test_trigger_tool_change"), move |_: Arguments, _| {
            let server = tools.clone();
            async move {
                server.change(|offer| offer.tool(tool("for_a_moment"), nothing))?;
                server.change(|offer| offer.remove_tool("for_a_moment"))?;
                Outcome::Ok("changed")
            }
        })
        .tool(
            tool("test_trigger_prompt_change"),
            move |_: Arguments, _| {
                let server = prompts.clone();
                async move {
                    let prompt = Prompt::new("for_a_moment").description("Nothing.");
                    server.change(|offer| {
                        offer.prompt(prompt, |_, _| async { Ok(PromptResult::user("nothing")) })
                    })?;
                    server.change(|offer| offer.remove_prompt("for_a_moment"))?;
                    Outcome::Ok("changed")
                }
            },
        )
}
