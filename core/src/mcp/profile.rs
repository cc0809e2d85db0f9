//! Profiles: documents that describe the protocol a little differently from the published
//! revisions, as data. The differences of a profile are its row of the table here, and its error
//! codes a column of the table of [`ErrorKind`]. A profile has no effect unless a program selects
//! it.

use std::borrow::Cow;
use std::fmt;

use super::code::ErrorKind;
use super::revision::Revision;
use crate::json::string;

/// A document whose variant of the protocol can be spoken, up to 2025-11-25.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Profile {
    /// The published revisions, to the letter.
    #[default]
    Official,
    /// A reference of the specification. An unsupported version is refused, with `supported` and `requested`.
    Reference,
    /// A chain of middleware. Codes -32001 to -32005, error texts in `data`, a bare `initialized`.
    Chain,
    /// A protocol with more methods: permission errors, tool failures as protocol errors, `batch/execute`,
    /// streams.
    Extended,
    /// Patterns of implementation. An unknown tool is an unknown method; a cancelled call is answered.
    Patterns,
}

/// The properties in which a profile differs from the revisions.
#[derive(Debug)]
pub struct Overlay {
    /// The profile's name.
    pub name: &'static str,
    /// The revision that the profile describes: a client asks for it, and a server falls back to
    /// it.
    pub preferred: Option<Revision>,
    /// Whether an unsupported version is refused, rather than answered with another one (R-ERR-20).
    pub refuses_versions: bool,
    /// Whether a handshake may lack members that the revisions require: `clientInfo` and
    /// `capabilities` of the client, `serverInfo` of the server. A server omits `serverInfo` if the
    /// client sent no `clientInfo` (R-LIF-08).
    pub lenient: bool,
    /// Whether a client sends `initialized` without the prefix `notifications/` (R-LIF-07).
    pub bare_initialized: bool,
    /// Whether servers declare `logging`.
    pub declares_logging: bool,
    /// Whether arguments that violate a schema are a protocol error in every revision.
    pub arguments_are_errors: bool,
    /// Whether the failure of a tool is a protocol error.
    pub failures_are_errors: bool,
    /// Whether a denied client is told so, rather than that the thing does not exist (R-PER-05).
    pub tells_denied: bool,
    /// Whether a cancelled request is answered (R-ERR-27).
    pub answers_cancelled: bool,
    /// Whether a reference to a resource may use `name` for `uri` (R-CMP-05).
    pub names_resources: bool,
    /// Whether a message of a prompt may have the role `system` (R-PRM-06).
    pub system_role: bool,
    /// Whether an `experimental` capability is active once the server declares it, even if the
    /// client does not (R-CAP-09).
    pub experimental: bool,
    /// The wording of errors; a kind that is not listed keeps the engine's wording.
    words: &'static [Words],
}

/// The wording of one kind of error. In the templates, `{about}` stands for the name in the request
/// and `{why}` for the engine's own sentence. `data` is JSON; empty means none, [`KEEP`] means the
/// engine's.
#[derive(Debug)]
struct Words {
    kind: ErrorKind,
    message: &'static str,
    data: &'static str,
}

const KEEP: &str = "=";

const fn words(kind: ErrorKind, message: &'static str, data: &'static str) -> Words {
    Words {
        kind,
        message,
        data,
    }
}

const OFFICIAL: Overlay = Overlay {
    name: "official",
    preferred: None,
    refuses_versions: false,
    lenient: false,
    bare_initialized: false,
    declares_logging: true,
    arguments_are_errors: false,
    failures_are_errors: false,
    tells_denied: false,
    answers_cancelled: false,
    names_resources: false,
    system_role: false,
    experimental: false,
    words: &[],
};

const OVERLAYS: [Overlay; 5] = {
    use ErrorKind::*;
    const URI: &str = r#"{"uri":"{about}"}"#;
    const TOOL: &str = r#"{"tool":"{about}"}"#;
    [
        OFFICIAL,
        Overlay {
            name: "reference",
            preferred: Some(Revision::V2025_06_18),
            refuses_versions: true,
            arguments_are_errors: true,
            words: &[words(ResourceNotFound, "Resource not found", KEEP)],
            ..OFFICIAL
        },
        Overlay {
            name: "chain",
            preferred: Some(Revision::V2025_03_26),
            lenient: true,
            bare_initialized: true,
            declares_logging: false,
            arguments_are_errors: true,
            tells_denied: true,
            words: &[
                words(Parse, "Parse error", ""),
                words(InvalidRequest, "Invalid Request", r#""{why}""#),
                words(
                    MethodNotFound,
                    "Method not found",
                    r#""Unknown method: {about}""#,
                ),
                words(InvalidParams, "Invalid params", r#""{why}""#),
                words(ToolArguments, "Invalid params", r#""{why}""#),
                words(Internal, "Internal error", r#""{why}""#),
                words(ResourceFailed, "Internal error", r#""{why}""#),
                words(
                    ToolNotFound,
                    "Tool not found",
                    r#""Tool '{about}' does not exist""#,
                ),
                words(
                    ResourceNotFound,
                    "Resource not found",
                    r#""Resource '{about}' does not exist""#,
                ),
                words(
                    PromptNotFound,
                    "Prompt not found",
                    r#""Prompt '{about}' does not exist""#,
                ),
                words(ToolFailed, "Tool execution failed", r#""{why}""#),
                words(TimedOut, "Tool execution failed", r#""{why}""#),
                words(
                    ToolDenied,
                    "Tool execution failed",
                    r#""Tool '{about}' is not allowed""#,
                ),
                words(
                    ResourceDenied,
                    "Resource access denied",
                    r#""Resource '{about}' is not allowed""#,
                ),
            ],
            ..OFFICIAL
        },
        Overlay {
            name: "extended",
            preferred: Some(Revision::V2024_11_05),
            lenient: true,
            arguments_are_errors: true,
            failures_are_errors: true,
            tells_denied: true,
            names_resources: true,
            system_role: true,
            experimental: true,
            words: &[
                words(ToolNotFound, "Unknown tool: {about}", TOOL),
                words(ToolDenied, "Permission denied for tool: {about}", TOOL),
                words(
                    ToolArguments,
                    "Invalid parameters for tool: {about}",
                    r#"{"validation_errors":["{why}"]}"#,
                ),
                words(ToolFailed, "Tool execution failed: {why}", TOOL),
                words(TimedOut, "Tool execution failed: {why}", TOOL),
                words(ResourceNotFound, "Resource not found: {about}", URI),
                words(ResourceDenied, "Access denied to resource: {about}", URI),
                words(
                    ResourceFailed,
                    "Resource error: {why}",
                    r#"{"uri":"{about}","error":"{why}"}"#,
                ),
            ],
            ..OFFICIAL
        },
        Overlay {
            name: "patterns",
            preferred: Some(Revision::V2025_03_26),
            arguments_are_errors: true,
            answers_cancelled: true,
            words: &[words(ToolNotFound, "Unknown tool: {about}", KEEP)],
            ..OFFICIAL
        },
    ]
};

/// An error before it is worded for a profile.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The name in the request: of a tool, a prompt, a resource (URI) or a method; empty if there
    /// is none.
    pub about: &'a str,
    /// The sentence of the engine or the handler.
    pub why: &'a str,
    /// The error's `data`, as JSON.
    pub data: Option<&'a str>,
}

/// An error as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spelt<'a> {
    /// The error code.
    pub code: i64,
    /// The error message.
    pub message: Cow<'a, str>,
    /// The error's `data`, as JSON.
    pub data: Option<Cow<'a, str>>,
}

impl Spelt<'_> {
    /// Copies borrowed texts, so that the error outlives them.
    pub fn into_owned(self) -> Spelt<'static> {
        Spelt {
            code: self.code,
            message: self.message.into_owned().into(),
            data: self.data.map(|data| data.into_owned().into()),
        }
    }
}

impl Profile {
    /// Every profile, `Official` first.
    pub const ALL: [Self; 5] = [
        Self::Official,
        Self::Reference,
        Self::Chain,
        Self::Extended,
        Self::Patterns,
    ];

    /// The properties in which the profile differs from the revisions.
    pub fn overlay(self) -> &'static Overlay {
        &OVERLAYS[self as usize]
    }

    /// The profile in effect for a revision: [`Official`](Self::Official) from 2026-07-28 on, where
    /// profiles have no effect (R-ERR-28).
    pub fn in_revision(self, revision: Revision) -> Self {
        match revision.rules().result_type {
            true => Self::Official,
            false => self,
        }
    }

    /// Whether arguments that violate a tool's schema are a tool error (`isError`) in that revision
    /// (R-TOL-05).
    pub fn arguments_are_tool_errors(self, revision: Revision) -> bool {
        let own = self.in_revision(revision).overlay().arguments_are_errors;
        !own && revision.rules().bad_arguments_is_tool_error
    }

    /// The error with the profile's code and wording.
    pub fn spell<'a>(self, revision: Revision, failure: Failure<'a>) -> Spelt<'a> {
        let code = failure.kind.code_in(self, revision);
        let rows = self.in_revision(revision).overlay().words;
        let Some(row) = rows.iter().find(|row| row.kind == failure.kind) else {
            return Spelt {
                code,
                message: failure.why.into(),
                data: failure.data.map(Cow::Borrowed),
            };
        };
        let data = match row.data {
            "" => None,
            KEEP => failure.data.map(Cow::Borrowed),
            template => Some(filled(template, failure, escaped)),
        };
        Spelt {
            code,
            message: filled(row.message, failure, str::to_owned),
            data,
        }
    }
}

/// Fills in a template; `spelt` encodes each inserted text.
fn filled<'a>(
    template: &'static str,
    failure: Failure<'_>,
    spelt: impl Fn(&str) -> String,
) -> Cow<'a, str> {
    if !template.contains("{about}") && !template.contains("{why}") {
        return template.into();
    }
    // Inserted texts may contain braces too, so each placeholder is replaced only once.
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("{about}") {
            out.push_str(&spelt(failure.about));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{why}") {
            out.push_str(&spelt(failure.why));
            rest = after;
        } else {
            out.push('{');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out.into()
}

/// The text escaped for the inside of a JSON string.
fn escaped(text: &str) -> String {
    let mut out = Vec::new();
    string::escape_into(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.overlay().name)
    }
}

impl std::str::FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let mut all = Self::ALL.into_iter();
        all.find(|profile| profile.overlay().name == name)
            .ok_or(UnknownProfile)
    }
}

/// The name is not that of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownProfile;

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Profile::ALL.map(|profile| profile.overlay().name);
        write!(f, "not a profile; known are {}", names.join(", "))
    }
}

impl std::error::Error for UnknownProfile {}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: ErrorKind) -> Failure<'static> {
        Failure {
            kind,
            about: "a\"{why}",
            why: "it broke",
            data: Some("1"),
        }
    }

    #[test]
    fn profiles_are_found_by_name_and_in_their_order() {
        for (i, profile) in Profile::ALL.into_iter().enumerate() {
            assert_eq!(profile as usize, i);
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
        let unknown = "seed-005".parse::<Profile>().unwrap_err().to_string();
        assert!(unknown.contains("reference"), "{unknown}");
    }

    /// R-CHN-05, R-PER-07: a profile has its own wording, whatever a name contains.
    #[test]
    fn errors_are_worded_as_the_profile_has_it() {
        let old = Revision::V2024_11_05;
        let spelt = Profile::Chain.spell(old, failure(ErrorKind::ToolNotFound));
        assert_eq!((spelt.code, &*spelt.message), (-32001, "Tool not found"));
        let data = r#""Tool 'a\"{why}' does not exist""#;
        assert_eq!(spelt.data.as_deref(), Some(data));
        let spelt = Profile::Extended.spell(old, failure(ErrorKind::ResourceFailed));
        assert_eq!(
            (spelt.code, &*spelt.message),
            (-32001, "Resource error: it broke")
        );
        let data = r#"{"uri":"a\"{why}","error":"it broke"}"#;
        assert_eq!(spelt.data.as_deref(), Some(data));
    }

    /// R-ERR-28
    #[test]
    fn nothing_of_a_profile_is_said_since_2026() {
        let newest = Revision::V2026_07_28;
        for profile in Profile::ALL {
            for kind in [ErrorKind::ToolNotFound, ErrorKind::ResourceDenied] {
                let official = Profile::Official.spell(newest, failure(kind));
                assert_eq!(profile.spell(newest, failure(kind)), official);
            }
            assert!(profile.arguments_are_tool_errors(newest));
        }
        assert!(!Profile::Patterns.arguments_are_tool_errors(Revision::V2025_11_25));
    }
}
