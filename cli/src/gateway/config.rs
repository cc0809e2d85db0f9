//! What a gateway is made of, as a file says it: TOML, or the JSON in which editors list servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpbolt::chain::{Isolation, Prefix};
use mcpbolt::error::RequestError;
use mcpbolt::io::{Address, AddressError};
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::policy::Policy;

use crate::reference::{Resolved, resolve};

use super::document::{self, Member, Node, Value};
use super::reading::{Entry, Findings, Keys, Text, joined};
use super::rules::Rules;
use super::status_page;

/// The settings of a gateway.
pub struct Config {
    /// Where to serve.
    pub listen: Option<Place>,
    pub servers: Vec<Upstream>,
    /// Who may do what; everybody everything without it.
    pub policy: Option<Policy>,
    /// The members of the policy, JSON: secret.
    pub policy_members: Option<String>,
    /// Whether each request is told in the log.
    pub audits: bool,
    /// The file of pins.
    pub pins: Option<PathBuf>,
    /// Where to show the status, and whether other machines may read it.
    pub status: Option<Place>,
    pub status_anonymous: bool,
}

/// A server behind the gateway.
#[derive(Debug)]
pub struct Upstream {
    /// Where it stands in the file.
    at: usize,
    path: String,
    pub name: String,
    /// What stands before its names; none if empty.
    pub prefix: String,
    pub target: Target,
    /// The revisions to speak with it; all if none is given.
    pub revisions: Option<Revisions>,
    /// How long to wait for an answer.
    pub timeout: Option<Duration>,
    /// Which clients share a connection.
    pub isolation: Option<Isolation>,
    /// The most connections.
    pub max_connections: Option<usize>,
    /// How long a shared connection is open without use; zero for ever.
    pub idle_time: Option<Duration>,
    pub rules: Rules,
}

/// An address, and how it was written: what a reference in it stands for may be secret.
#[derive(Debug)]
pub struct Place {
    pub address: Address,
    pub written: Resolved,
}

/// How a server is reached.
#[derive(Debug)]
pub enum Target {
    Command {
        words: Vec<Resolved>,
        env: Vec<(String, Resolved)>,
        cwd: PathBuf,
    },
    At {
        address: Place,
        headers: Vec<(String, Resolved)>,
    },
}

/// What was read: a configuration, or all that is wrong with it; and what is ignored.
pub struct Read {
    pub config: Result<Config, Vec<String>>,
    pub warnings: Vec<String>,
}

/// Reads a file. What a `.toml` file is not is read as JSON.
pub fn read(file: &Path) -> Read {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            let problems = vec![format!("{}: {error}", file.display())];
            return Read {
                config: Err(problems),
                warnings: Vec::new(),
            };
        }
    };
    let is_toml = file
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    let parsed = if is_toml {
        document::toml(&text)
    } else {
        document::json(&text)
    };
    let mut findings = Findings::new(file, &text, !is_toml);
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    let config = match parsed {
        Ok(node) => of_document(node, folder, &mut findings),
        Err(broken) => {
            findings.wrong(broken.at, "", broken.why);
            None
        }
    };
    let (problems, warnings) = findings.told();
    let config = config.filter(|_| problems.is_empty()).ok_or(problems);
    Read { config, warnings }
}

fn of_document(node: Node, folder: &Path, findings: &mut Findings<'_>) -> Option<Config> {
    let mut keys = Keys::of(
        Entry {
            path: String::new(),
            node,
        },
        findings,
    )?;
    let listen = keys
        .text("listen", findings)
        .and_then(|entry| address(entry, folder, findings));
    let mut servers = Vec::new();
    let at = keys.at;
    // Editors have either name.
    for name in ["servers", "mcpServers"] {
        let table = keys.take(name).and_then(|entry| Keys::of(entry, findings));
        for (name, entry) in table.map(Keys::rest).unwrap_or_default() {
            let server = Keys::of(entry, findings);
            servers.extend(server.and_then(|keys| of_server(name, keys, folder, findings)));
        }
    }
    let policy = keys
        .take("policy")
        .and_then(|entry| policy(entry, folder, findings));
    let (policy, policy_members) = policy.unzip();
    let audits = keys.flag("audit", findings);
    let pins = keys
        .text("pins", findings)
        .and_then(|entry| value(entry, folder, findings))
        .map(|file| folder.join(file.value()));
    if keys.place("status").is_none() {
        keys.needless(
            &["status_anonymous"],
            "is for a status; write status =",
            findings,
        );
    }
    let status_anonymous = keys.flag("status_anonymous", findings);
    let status = keys.text("status", findings).and_then(|entry| {
        let (at, path) = (entry.at, entry.path.clone());
        let status = address(entry, folder, findings)?;
        let place = status_page::place(&status.address, status_anonymous);
        place.map_err(|why| findings.wrong(at, &path, why)).ok()?;
        Some(status)
    });
    keys.end(findings);
    if servers.is_empty() && findings.problems() == 0 {
        findings.wrong(
            at,
            "",
            "names no server; write [servers.NAME] with a command or a url",
        );
    }
    for (index, server) in servers.iter().enumerate() {
        for other in &servers[..index] {
            if let Some(why) = server.confusion(other) {
                findings.wrong(server.at, &server.path, why);
            }
        }
    }
    Some(Config {
        listen,
        servers,
        policy,
        policy_members,
        audits,
        pins,
        status,
        status_anonymous,
    })
}

fn of_server(
    name: String,
    mut keys: Keys,
    folder: &Path,
    findings: &mut Findings<'_>,
) -> Option<Upstream> {
    if keys.flag("disabled", findings) {
        return None;
    }
    let (at, path) = (keys.at, keys.path().to_owned());
    let prefix = match keys.text("prefix", findings) {
        Some(prefix) => prefix.text,
        // Names of editors may have any characters.
        None if findings.is_shared => name.replace(|c| !is_of_prefix(c), "_"),
        None => name.clone(),
    };
    if !prefix.chars().all(is_of_prefix) {
        let why = format!(
            "{prefix:?} is no prefix: write prefix = with ASCII letters, digits, - and _ alone"
        );
        findings.wrong(at, &path, why);
    } else if !prefix.is_empty()
        && let Err(RequestError::Misuse(why)) = Prefix::new(&*prefix)
    {
        findings.wrong(at, &path, format_args!("{prefix:?}: {why}"));
    }
    let revisions = revisions(&mut keys, findings);
    // Editors count it in units of their own.
    let timeout = match findings.is_shared {
        true => None,
        false => keys.number("timeout", findings).map(Duration::from_secs),
    };
    let isolation = keys.text("isolation", findings).and_then(|entry| {
        let isolation = entry.text.parse();
        isolation
            .map_err(|why: String| findings.wrong(entry.at, &entry.path, why))
            .ok()
    });
    let max_connections = keys.number("max_connections", findings);
    let idle_time = keys.number_from(0, "idle_time", findings);
    let rules = Rules::of(&mut keys, findings);
    // Says what the other keys say, too.
    keys.text("type", findings);
    let target = target(&mut keys, folder, findings);
    keys.end(findings);
    Some(Upstream {
        at,
        path,
        name,
        prefix,
        target: target?,
        revisions,
        timeout,
        isolation,
        max_connections: max_connections
            .map(|number| usize::try_from(number).unwrap_or(usize::MAX)),
        idle_time: idle_time.map(Duration::from_secs),
        rules,
    })
}

fn is_of_prefix(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

impl Upstream {
    /// Why clients could take one of these servers for the other.
    fn confusion(&self, other: &Self) -> Option<String> {
        if self.name == other.name {
            return Some("has the name of another server".to_owned());
        }
        let (one, two) = (self.prefix.to_lowercase(), other.prefix.to_lowercase());
        if one.is_empty() || two.is_empty() {
            let why = "has no prefix, as another server: one at most may have none";
            return (one == two).then(|| why.to_owned());
        }
        let begins = |long: &str, short: &str| {
            let rest = long.strip_prefix(short);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        let is_confusing = begins(&one, &two) || begins(&two, &one);
        is_confusing.then(|| {
            format!(
                "its prefix {:?} and {:?}, that of {:?}, could make the same names; write another prefix =",
                self.prefix, other.prefix, other.name
            )
        })
    }
}

fn target(keys: &mut Keys, folder: &Path, findings: &mut Findings<'_>) -> Option<Target> {
    match (keys.place("url"), keys.place("command")) {
        (Some(_), None) => {
            let why = "is for a command, and this server has a url";
            keys.needless(&["args", "env", "cwd"], why, findings);
        }
        (None, Some(_)) => {
            let why = "is for a url, and this server has a command";
            keys.needless(&["headers"], why, findings);
        }
        _ => {}
    }
    let url = keys.text("url", findings);
    let command = words(keys, folder, findings);
    let env = pairs(keys, "env", folder, findings);
    let cwd = keys
        .text("cwd", findings)
        .and_then(|entry| value(entry, folder, findings));
    let headers_at = keys.place("headers");
    let headers = pairs(keys, "headers", folder, findings);
    match (url, command) {
        (Some(url), None) => {
            let address = address(url, folder, findings)?;
            let takes_headers = matches!(address.address, Address::Http(_) | Address::WebSocket(_));
            if let (Some(at), false) = (headers_at, takes_headers) {
                let path = joined(keys.path(), "headers");
                findings.wrong(
                    at,
                    &path,
                    "is for HTTP and WebSocket, and the url is neither",
                );
            }
            Some(Target::At { address, headers })
        }
        (None, Some(words)) => {
            let cwd = folder.join(cwd.as_ref().map_or("", Resolved::value));
            Some(Target::Command { words, env, cwd })
        }
        (Some(_), Some(_)) => {
            let why = "has a command and a url; one of them is where the server is";
            findings.wrong(keys.at, keys.path(), why);
            None
        }
        (None, None) => {
            findings.wrong(keys.at, keys.path(), "has neither a command nor a url");
            None
        }
    }
}

/// The command and its arguments, if there is one: a list, or a text beside `args`.
fn words(keys: &mut Keys, folder: &Path, findings: &mut Findings<'_>) -> Option<Vec<Resolved>> {
    let is_list = keys.is_list("command");
    let args = keys.texts("args", findings);
    let (at, path) = (keys.at, format!("{}.command", keys.path()));
    let mut texts: Vec<_> = match is_list? {
        true => keys.texts("command", findings),
        false => keys.text("command", findings).into_iter().collect(),
    };
    if is_list == Some(true) && texts.is_empty() {
        findings.wrong(at, &path, "is empty");
    }
    texts.extend(args);
    let words = texts.into_iter();
    Some(
        words
            .filter_map(|text| value(text, folder, findings))
            .collect(),
    )
}

fn revisions(keys: &mut Keys, findings: &mut Findings<'_>) -> Option<Revisions> {
    let (at, known) = (keys.place("revisions"), findings.problems());
    let entries = keys.texts("revisions", findings);
    if let Some(at) = at
        && entries.is_empty()
        && findings.problems() == known
    {
        let path = joined(keys.path(), "revisions");
        findings.wrong(at, &path, "is empty; leave it out for all revisions");
    }
    let mut revisions = Vec::new();
    for Text { path, at, text } in entries {
        match text.parse::<Revision>() {
            Ok(revision) => revisions.push(revision),
            Err(error) => findings.wrong(at, &path, error),
        }
    }
    (!revisions.is_empty()).then(|| revisions.into_iter().collect())
}

fn pairs(
    keys: &mut Keys,
    key: &'static str,
    folder: &Path,
    findings: &mut Findings<'_>,
) -> Vec<(String, Resolved)> {
    let table = keys.take(key).and_then(|entry| Keys::of(entry, findings));
    let members = table.map(Keys::rest).unwrap_or_default();
    let pair = |(name, entry)| {
        let text = Text::of(entry, findings)?;
        Some((name, value(text, folder, findings)?))
    };
    members.into_iter().filter_map(pair).collect()
}

fn address(text: Text, folder: &Path, findings: &mut Findings<'_>) -> Option<Place> {
    let (path, at) = (text.path.clone(), text.at);
    let written = value(text, folder, findings)?;
    match written.value().parse() {
        Ok(address) => Some(Place { address, written }),
        // Its words have the value.
        Err(_) if written.is_reference() => {
            findings.wrong(at, &path, "what this refers to is no address");
            None
        }
        Err(error) => {
            let error: AddressError = error;
            findings.wrong(at, &path, error);
            None
        }
    }
}

/// A policy and its members, JSON; its table has the members of [`Policy::from_json`].
fn policy(entry: Entry, folder: &Path, findings: &mut Findings<'_>) -> Option<(Policy, String)> {
    let (path, at) = (entry.path.clone(), entry.node.at);
    let known = findings.problems();
    let written = as_written(&entry.node).to_string();
    let json = json(entry, folder, findings).to_string();
    // With a value missing, the rest is not judged.
    if findings.problems() > known {
        return None;
    }
    let Ok(policy) = Policy::from_json(&json) else {
        // An error may quote the values of references: what is told is the error with the references themselves.
        match Policy::from_json(&written) {
            Err(error) => findings.wrong(at, &path, document::without_place(&error.to_string())),
            Ok(_) => findings.wrong(at, &path, "what this refers to makes no policy"),
        }
        return None;
    };
    Some((policy, json))
}

/// A value whose texts keep their references.
fn as_written(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Text(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Flag(flag) => (*flag).into(),
        Value::List(list) => list.iter().map(as_written).collect(),
        Value::Table(members) => members
            .iter()
            .map(|member| (member.key.clone(), as_written(&member.node)))
            .collect(),
        Value::Other(_) => serde_json::Value::Null,
    }
}

/// A value with the references of its texts resolved.
fn json(entry: Entry, folder: &Path, findings: &mut Findings<'_>) -> serde_json::Value {
    let Entry { path, node } = entry;
    match node.value {
        Value::Text(text) => {
            let at = node.at;
            let resolved = value(Text { path, at, text }, folder, findings);
            resolved.map(|text| text.value().into()).unwrap_or_default()
        }
        Value::Integer(number) => number.into(),
        Value::Flag(flag) => flag.into(),
        Value::List(list) => {
            let entries = list.into_iter().enumerate().map(|(index, node)| Entry {
                path: format!("{path}[{index}]"),
                node,
            });
            entries.map(|entry| json(entry, folder, findings)).collect()
        }
        Value::Table(members) => {
            let member = |Member { key, at, node }| {
                let path = joined(&path, &key);
                // The keys of a policy's clients are secrets, too.
                let name = value(
                    Text {
                        path: path.clone(),
                        at,
                        text: key,
                    },
                    folder,
                    findings,
                );
                let json = json(Entry { path, node }, folder, findings);
                Some((name?.value().to_owned(), json))
            };
            members.into_iter().filter_map(member).collect()
        }
        Value::Other(kind) => {
            findings.wrong(
                node.at,
                &path,
                format_args!("is {kind}, which no setting is"),
            );
            serde_json::Value::Null
        }
    }
}

/// A text with its references resolved.
fn value(
    Text { path, at, text }: Text,
    folder: &Path,
    findings: &mut Findings<'_>,
) -> Option<Resolved> {
    let resolved = resolve(text, folder);
    resolved.map_err(|why| findings.wrong(at, &path, why)).ok()
}
