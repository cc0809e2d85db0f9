//! Extensions that both sides declare, and the skills extension.

use mcpbolt::client::{Client, ClientHost, block_on};
use mcpbolt::connection::{Answer, Batch, CallKey, Connection, Disposition, Host, IncomingRequest};
use mcpbolt::error::RequestError;
use mcpbolt::io::join;
use mcpbolt::mcp::{ErrorKind, Method, Revision, extension};
use mcpbolt::server::{Arguments, Context, HandlerError, Registry, RegistryError, Skill, Tool};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::asks::{call, with_clients};
use crate::server;
use crate::wire::Wire;

const NEWEST: Revision = Revision::V2026_07_28;
const MANIFEST: &str =
    "---\nname: pdf\ndescription: Fills in forms\nmetadata:\n  level: 2\n---\nRead on.\n";

fn pdf() -> Skill {
    Skill::new(MANIFEST)
        .unwrap()
        .file("references/FORMS.md", "text/markdown", "Forms.\n")
        .file("assets/a.png", "image/png", [0xfb, 0xff])
}

/// R-EXT-01 to R-EXT-03, R-EXT-07, R-CAP-06, R-CAP-08, R-CAP-10.
#[test]
fn an_extension_is_active_where_both_declare_it() {
    const OWN: &str = "com.example/own";
    let tool = Tool::new("own");
    let server = server(0).extension(OWN, r#"{"a":1}"#).tool(
        tool,
        |_: Arguments, context: Context| async move {
            context.extension(OWN).unwrap_or("none").to_owned()
        },
    );
    let server = server.build().unwrap();
    for declares in [true, false] {
        let build = |builder: mcpbolt::client::ClientBuilder| match declares {
            true => builder.extension(OWN, r#"{"b":2}"#),
            false => builder.roots([]),
        };
        with_clients(&server, Revision::ALL, build, |revision, client| {
            let is_new = revision == NEWEST;
            let declared = client.capabilities()["extensions"][OWN].clone();
            assert_eq!(declared, if is_new { json!({"a": 1}) } else { Value::Null });
            let seen = if is_new && declares {
                r#"{"b":2}"#
            } else {
                "none"
            };
            assert_eq!(call(client, "own", &json!({})), Ok(seen.to_owned()));
        });
    }
    for (id, settings) in [("own", "{}"), ("/own", "{}"), (OWN, "[]"), (OWN, "{")] {
        let wrong = crate::server(0).extension(id, settings).build();
        assert!(
            matches!(wrong, Err(RegistryError::Extension(_))),
            "{id} {settings}"
        );
        let wrong = Client::builder("x", "1").extension(id, settings).prepare();
        assert!(
            matches!(wrong, Err(RequestError::Misuse(_))),
            "{id} {settings}"
        );
    }
    // Nothing is declared unasked, and what is not declared is not known.
    let mut wire = Wire::open(&crate::server(1).build().unwrap(), NEWEST, json!({}));
    let found = wire.ask(NEWEST, "server/discover", json!({}));
    assert!(found["result"]["capabilities"].get("extensions").is_none());
    for method in [
        "skills/list",
        "skills/get",
        "resources/directory/read",
        "tasks/get",
    ] {
        assert_eq!(
            wire.ask(NEWEST, method, json!({}))["error"]["code"],
            -32601,
            "{method}"
        );
    }
}

#[test]
fn a_server_tells_of_its_skills_and_gives_their_files() {
    let server = server(1).skill(pdf()).page_size(2.try_into().unwrap());
    let server = server.build().unwrap();
    let mut wire = Wire::open(&server, NEWEST, json!({}));
    let found = wire.ask(NEWEST, "server/discover", json!({}))["result"].clone();
    let declared = &found["capabilities"]["extensions"][extension::SKILLS];
    assert_eq!(*declared, json!({"directoryRead": true}));
    assert!(found["capabilities"]["resources"].is_object());
    let list = wire.ask(NEWEST, "skills/list", json!({}))["result"].clone();
    assert_eq!(
        (&list["ttlMs"], &list["cacheScope"]),
        (&json!(0), &json!("private"))
    );
    let entry = &list["skills"][0];
    assert_eq!(entry["uri"], "skill://pdf/SKILL.md");
    let frontmatter =
        json!({"name": "pdf", "description": "Fills in forms", "metadata": {"level": 2}});
    assert_eq!(entry["frontmatter"], frontmatter);
    let files = entry["resources"].as_array().unwrap();
    assert_eq!(files.len(), 3);
    let manifest = files
        .iter()
        .find(|file| file["uri"] == entry["uri"])
        .unwrap();
    assert_eq!(manifest["size"], MANIFEST.len());
    assert_eq!(
        manifest["digest"].as_str().unwrap().len(),
        "sha256:".len() + 64
    );
    let got = wire.ask(NEWEST, "skills/get", json!({"uri": entry["uri"]}))["result"].clone();
    assert_eq!((&got["skill"], got.get("nextCursor")), (entry, None));
    assert_eq!(got["ttlMs"], 0);
    let mut code =
        |method: &str, params: Value| wire.ask(NEWEST, method, params)["error"]["code"].clone();
    assert_eq!(
        code("skills/get", json!({"uri": "skill://x/SKILL.md"})),
        -32602
    );
    for uri in ["skill://pdf/SKILL.md", "skill://pd", "skill://", ""] {
        assert_eq!(
            code("resources/directory/read", json!({"uri": uri})),
            -32602,
            "{uri}"
        );
    }
    let mut folder =
        |params: Value| wire.ask(NEWEST, "resources/directory/read", params)["result"].clone();
    let first = folder(json!({"uri": "skill://pdf"}));
    let uris = |page: &Value| {
        page["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["uri"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(uris(&first), ["skill://pdf/SKILL.md", "skill://pdf/assets"]);
    assert_eq!(first["resources"][1]["mimeType"], "inode/directory");
    let second = folder(json!({"uri": "skill://pdf", "cursor": first["nextCursor"]}));
    assert_eq!(uris(&second), ["skill://pdf/references"]);
    let inner = folder(json!({"uri": "skill://pdf/references"}));
    assert_eq!(uris(&inner), ["skill://pdf/references/FORMS.md"]);
    let listed = wire.ask(NEWEST, "resources/list", json!({}))["result"]["resources"][0].clone();
    let manifest = json!({"uri": "skill://pdf/SKILL.md", "name": "pdf", "description": "Fills in forms", "mimeType": "text/markdown"});
    assert_eq!(listed, manifest);
    // The files are resources in every revision.
    for revision in Revision::ALL {
        let mut wire = Wire::open(&server, revision, json!({}));
        let mut read = |uri: &str| {
            wire.ask(revision, "resources/read", json!({"uri": uri}))["result"]["contents"][0]
                .clone()
        };
        let text = read("skill://pdf/SKILL.md");
        assert_eq!(
            (&text["text"], &text["mimeType"]),
            (&json!(MANIFEST), &json!("text/markdown"))
        );
        assert_eq!(read("skill://pdf/assets/a.png")["blob"], "+/8=");
    }
}

#[test]
fn what_is_no_skill_is_not_offered() {
    for manifest in [
        "no frontmatter",
        "---\nname: pdf\n---\n",
        "---\nname: PDF\ndescription: x\n---\n",
        "---\nname: pdf\ndescription: ''\n---\n",
    ] {
        assert!(Skill::new(manifest).is_err(), "{manifest}");
    }
    let offer = |skills: Vec<Skill>| {
        let mut registry = Registry::new();
        skills
            .into_iter()
            .try_for_each(|skill| registry.add_skill(skill))
    };
    assert!(offer(vec![pdf(), pdf().within("team/")]).is_ok());
    assert!(offer(vec![pdf(), pdf()]).is_err());
    for path in ["../x", "/x", "a//b", "a/./b", "", "a?b"] {
        assert!(
            offer(vec![pdf().file(path, "text/plain", "x")]).is_err(),
            "{path}"
        );
    }
    assert!(offer(vec![pdf().file("big", "text/plain", vec![0; 17 << 20])]).is_err());
}

/// A server whose files are not what it says of them.
struct Liar {
    manifest: &'static str,
    read: Arc<Mutex<Vec<String>>>,
}

impl Host for Liar {
    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let skill = pdf();
        let mut registry = Registry::new();
        registry.add_skill(skill).unwrap();
        match request.method {
            Some(Method::ReadResource) => {
                let uri = request.message.uri().unwrap().into_owned();
                self.read.lock().unwrap().push(uri.clone());
                let contents = json!([{"uri": uri, "text": self.manifest}]);
                answer.result(|result| result.raw("contents", &contents.to_string()))
            }
            Some(Method::ListSkills) => {
                let hash =
                    "sha256:f16b3df67c9e4b2c4a60b3c3c3ae79e7d7c0e2a7b8aa3e0e3c0b6d9d8f1a2b3c";
                let frontmatter = json!({"name": "pdf", "description": "Fills in forms", "metadata": {"level": 2}});
                let file =
                    json!({"uri": "skill://pdf/SKILL.md", "digest": hash, "size": MANIFEST.len()});
                let skills = json!([{"uri": "skill://pdf/SKILL.md", "frontmatter": frontmatter, "resources": [file]}]);
                answer.result(|result| result.raw("skills", &skills.to_string()))
            }
            _ => answer.error(ErrorKind::MethodNotFound, "no", None),
        }
    }

    fn dispatch(&mut self, _: Batch) {}

    fn cancelled(&mut self, _: CallKey, _: Option<&str>) {}
}

#[test]
fn a_client_uses_no_skill_that_is_not_what_its_entry_says() {
    let server = server(1).skill(pdf()).build().unwrap();
    with_clients(
        &server,
        [NEWEST],
        |builder| builder,
        |_, client| {
            let skills = block_on(client.list_skills()).unwrap();
            assert_eq!(block_on(client.load_skill(&skills[0])).unwrap(), MANIFEST);
            let image = block_on(client.read_skill_file(&skills[0], "skill://pdf/assets/a.png"));
            assert_eq!(image.unwrap(), [0xfb, 0xff]);
            let other = block_on(client.read_skill_file(&skills[0], "skill://pdf/other"));
            assert!(matches!(other, Err(RequestError::Misuse(_))));
            assert_eq!(
                block_on(client.skill("skill://pdf/SKILL.md")).unwrap(),
                skills[0]
            );
            assert_eq!(
                block_on(client.read_directory("skill://pdf"))
                    .unwrap()
                    .len(),
                3
            );
            let mut changed = skills[0].clone();
            changed
                .frontmatter
                .insert("description".into(), json!("Steals"));
            let refused = block_on(client.load_skill(&changed)).unwrap_err();
            assert!(matches!(refused, RequestError::BadAnswer(why) if why.contains("frontmatter")));
        },
    );
    let none = crate::server(1).build().unwrap();
    with_clients(
        &none,
        Revision::ALL,
        |builder| builder,
        |_, client| {
            let error = block_on(client.list_skills()).unwrap_err();
            assert_eq!(error, RequestError::Unsupported(extension::SKILLS));
        },
    );
    for (manifest, fault) in [(MANIFEST, "digest"), ("---\nname: pdf\n---\n", "long")] {
        let mut config = Registry::new().config("liar", "1");
        config.capabilities = std::array::from_fn(|_| {
            json!({"resources": {}, "extensions": {extension::SKILLS: {}}})
                .to_string()
                .into()
        });
        let far = Connection::new(Arc::new(config), Instant::now());
        let near = Connection::new(Arc::new(Client::config("test", "1")), Instant::now());
        let (handle, read) = (near.handle(), Arc::default());
        let liar = Liar {
            manifest,
            read: Arc::clone(&read),
        };
        join((far, liar), (near, ClientHost::new())).unwrap();
        let client = block_on(Client::open(handle)).unwrap();
        let skills = block_on(client.list_skills()).unwrap();
        assert!(
            read.lock().unwrap().is_empty(),
            "nothing is read ahead of need"
        );
        let refused = block_on(client.load_skill(&skills[0])).unwrap_err();
        assert!(
            matches!(refused, RequestError::BadAnswer(why) if why.contains(fault)),
            "{refused}"
        );
    }
}

/// R-TOL-03, R-RES-13: a guard stands before skills, too, whichever way they are read.
#[test]
fn a_guard_judges_who_reads_a_skill() {
    let guarded = server(0)
        .skill(pdf())
        .guard(|access| match access.principal {
            Some("ada") => Ok(()),
            _ => Err(HandlerError::protocol(
                ErrorKind::InvalidRequest,
                access.name,
            )),
        });
    let guarded = guarded.build().unwrap();
    for (principal, refused) in [("eve", true), ("ada", false)] {
        let mut wire = Wire::open(&guarded, NEWEST, json!({}));
        wire.capabilities = json!({"extensions": {extension::SKILLS: {}}});
        wire.connection.set_principal(principal);
        for (method, uri) in [
            ("resources/read", "skill://pdf/SKILL.md"),
            ("skills/get", "skill://pdf/SKILL.md"),
            ("resources/directory/read", "skill://pdf"),
        ] {
            let answer = wire.ask(NEWEST, method, json!({ "uri": uri }));
            let says = answer["error"]["message"].as_str();
            assert_eq!(says, refused.then_some(uri), "{method} {answer}");
        }
        // All clients may see the list.
        let listed = wire.ask(NEWEST, "skills/list", json!({}));
        assert_eq!(listed["result"]["skills"].as_array().unwrap().len(), 1);
    }
}
