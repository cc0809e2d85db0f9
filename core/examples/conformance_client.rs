//! The client that the official conformance suite asks for, on Streamable HTTP. The suite says in
//! the environment which scenario it plays, and passes the server's URL last:
//!
//! ```text
//! conformance client --command target/debug/examples/conformance_client --suite all
//! ```

use std::env;
use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::io::login::{
    AssertionRequest, Authorization, AuthorizationPage, Grant, Hooked, IdentityProvider,
    LoginHooks, LoginOptions, SigningKey,
};
use mcpbolt::mcp::{Era, Revision, Revisions, extension};
use mcpbolt::model::Tool;
use mcpbolt::model::{Elicitation, Elicited};
use serde_json::{Map, Value, json};

/// Scenarios about skills.
const SKILLS: &str = "sep-2640";

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let url = env::args().next_back().unwrap_or_default();
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let mut options = HttpClientOptions::default();
    if scenario.starts_with("auth/") {
        options.authorization = Some(authorization()?);
    }
    let client = block_on(builder(&scenario).http(&url, options))?;
    block_on(play(&client, &scenario))
}

/// A client of the revision that is played. Older suites name none, and know no probe; the
/// extensions are those of the newest.
fn builder(scenario: &str) -> ClientBuilder {
    let revision = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let revisions = match Revision::parse(&revision) {
        _ if scenario.starts_with(SKILLS) => Revisions::ALL,
        Some(revision) if revision.era() == Era::Stateless => Revisions::ALL,
        Some(revision) => Revisions::only(revision),
        None => Revision::ALL
            .into_iter()
            .filter(|revision| revision.era() == Era::Handshake)
            .collect(),
    };
    Client::builder("mcpbolt-conformance", env!("CARGO_PKG_VERSION"))
        .revisions(revisions)
        .extension(extension::SKILLS, "{}")
        .on_form(|form, _| async move { Ok(Elicited::Accepted(filled(&form))) })
}

/// The suite's data for a scenario.
fn context() -> Result<Value, serde_json::Error> {
    let context = env::var("MCP_CONFORMANCE_CONTEXT");
    context.map_or(Ok(Value::Null), |context| serde_json::from_str(&context))
}

/// The login that the scenario's context asks for.
fn authorization() -> Result<Authorization, Box<dyn Error>> {
    let context = context()?;
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    let mut options = LoginOptions::new("mcpbolt-conformance");
    options.client_id = text("client_id");
    options.client_secret = text("client_secret").map(Into::into);
    let address = "https://conformance-test.local/client-metadata.json";
    options.client_metadata_url = Some(address.into());
    let has_secret = options.client_secret.is_some();
    if let (Some(token_endpoint), Some(client_id)) =
        (text("idp_token_endpoint"), text("idp_client_id"))
    {
        options.grant = Grant::EnterpriseManaged(IdentityProvider {
            token_endpoint,
            client_id,
            client_secret: None,
        });
    } else if text("valid_jwt").is_some() {
        options.grant = Grant::WorkloadJwt;
    } else if let Some(pem) = text("private_key_pem") {
        let algorithm = text("signing_algorithm").unwrap_or_default();
        options.signing_key = Some(SigningKey::from_pem(pem.as_bytes(), &algorithm)?);
        options.grant = Grant::ClientCredentials;
    } else if has_secret && env::var("MCP_CONFORMANCE_SCENARIO")?.contains("client-credentials") {
        options.grant = Grant::ClientCredentials;
    }
    let assertion = text("idp_id_token").or_else(|| text("valid_jwt"));
    Ok(Authorization::new(options).with_hooks(Headless { assertion }))
}

/// A user who consents to everything, without a browser.
struct Headless {
    assertion: Option<String>,
}

impl LoginHooks for Headless {
    fn redirect_uri(&self, _known: Option<String>) -> Hooked<'_, String> {
        Box::pin(async { Ok("http://localhost:3000/callback".into()) })
    }

    fn authorize(&self, page: AuthorizationPage) -> Hooked<'_, String> {
        Box::pin(async move { redirected(&page.url).map_err(|error| error.to_string()) })
    }

    fn assertion(&self, _request: AssertionRequest) -> Hooked<'_, String> {
        let assertion = self.assertion.clone();
        Box::pin(async { assertion.ok_or_else(|| "the suite gives no assertion".into()) })
    }
}

/// Where a page on this machine redirects to.
fn redirected(url: &str) -> Result<String, Box<dyn Error>> {
    let rest = url.strip_prefix("http://").ok_or("the page has https")?;
    let (host, path) = rest.split_once('/').ok_or("the page has no path")?;
    let mut stream = TcpStream::connect(host)?;
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let location = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim())
    });
    Ok(location.ok_or("the page does not redirect")?.to_owned())
}

/// A form as a user sends it who changes nothing, and fills in what has to be.
fn filled(form: &Elicitation) -> Map<String, Value> {
    let Elicitation::Form { schema, .. } = form else {
        return Map::new();
    };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields
        .filter_map(|(name, field)| match field.get("default") {
            Some(default) => Some((name.clone(), default.clone())),
            None if required.contains(&json!(name)) => Some((name.clone(), example(field))),
            None => None,
        })
        .collect()
}

/// Something that fits a plain schema.
fn example(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => arguments(schema),
        _ => json!("test"),
    }
}

/// Arguments that fit a schema: what it requires.
fn arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten();
    let all = required.filter_map(|name| {
        let name = name.as_str()?;
        Some((name.to_owned(), example(&schema["properties"][name])))
    });
    Value::Object(all.collect())
}

async fn play(client: &Client, scenario: &str) -> Outcome {
    if scenario.starts_with(SKILLS) {
        return skills(client, scenario).await;
    }
    if client.capabilities()["tools"].is_object() {
        let tools = client.list_tools().await?;
        match scenario {
            "http-custom-headers" => planned(client).await?,
            "json-schema-2020-12-preservation" => echoed(client, &tools).await?,
            // Only what is done with the list counts.
            "json-schema-ref-no-deref" => {}
            _ => {
                for tool in &tools {
                    let arguments = arguments(&tool.input_schema.read()?);
                    client.call_tool(&tool.name, &arguments).await?;
                }
            }
        }
    }
    if client.capabilities()["resources"].is_object() {
        for resource in client.list_resources().await? {
            client.read_resource(&resource.uri).await?;
        }
    }
    if client.capabilities()["prompts"].is_object() {
        for prompt in client.list_prompts().await? {
            let fields = prompt.arguments.iter();
            let arguments: Vec<_> = fields.map(|field| (&*field.name, "test")).collect();
            client.get_prompt(&prompt.name, &arguments).await?;
        }
    }
    Ok(())
}

/// The calls that the suite names.
async fn planned(client: &Client) -> Outcome {
    let context = context()?;
    for call in context["toolCalls"].as_array().into_iter().flatten() {
        let name = call["name"].as_str().unwrap_or_default();
        client.call_tool(name, &call["arguments"]).await?;
    }
    Ok(())
}

/// Hands a schema back as it came.
async fn echoed(client: &Client, tools: &[Tool]) -> Outcome {
    let named = |tool: &&Tool| tool.name == "json_schema_2020_12_tool";
    let tool = tools.iter().find(named).ok_or("the tool is not there")?;
    let schema = json!({ "schema": tool.input_schema });
    client.call_tool("json_schema_echo", &schema).await?;
    Ok(())
}

/// Loads skills, which are not what their entries say.
async fn skills(client: &Client, scenario: &str) -> Outcome {
    for skill in client.list_skills().await? {
        if scenario != "sep-2640-client-no-prefetch" {
            client.load_skill(&skill).await?;
        }
    }
    Ok(())
}
