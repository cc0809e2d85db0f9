//! The shapes of results, as far as all revisions agree: which members there are, and their types.
//! Additional members are allowed (R-RPC-13).

use std::fmt::Write as _;

use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::Method;

/// The type of a value.
#[derive(Debug)]
enum Kind {
    Text,
    Number,
    Flag,
    /// Any object.
    Object,
    Shape(Shape),
    List(&'static Kind),
    /// A content block, whose shape depends on its `type`. Unknown types are accepted.
    Content,
    /// Resource contents, with either `text` or `blob` (R-RES-02).
    Contents,
}

/// The members of an object.
type Shape = &'static [(&'static str, Need, Kind)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Must,
    May,
}

use Kind::{Content, Contents, Flag, List, Number, Object, Text};
use Need::{May, Must};

/// The shape of a method's results; `None` if it is not checked.
fn shape(method: Method) -> Option<Shape> {
    const TOOL: Shape = &[
        ("name", Must, Text),
        ("title", May, Text),
        ("description", May, Text),
        ("inputSchema", Must, Object),
        ("outputSchema", May, Object),
        ("annotations", May, Object),
    ];
    const RESOURCE: Shape = &[
        ("uri", Must, Text),
        ("name", Must, Text),
        ("description", May, Text),
        ("mimeType", May, Text),
        ("size", May, Number),
    ];
    const TEMPLATE: Shape = &[
        ("uriTemplate", Must, Text),
        ("name", Must, Text),
        ("description", May, Text),
        ("mimeType", May, Text),
    ];
    const ARGUMENT: Shape = &[
        ("name", Must, Text),
        ("description", May, Text),
        ("required", May, Flag),
    ];
    const PROMPT: Shape = &[
        ("name", Must, Text),
        ("description", May, Text),
        ("arguments", May, List(&Kind::Shape(ARGUMENT))),
    ];
    const MESSAGE: Shape = &[("role", Must, Text), ("content", Must, Content)];
    const COMPLETION: Shape = &[
        ("values", Must, List(&Text)),
        ("total", May, Number),
        ("hasMore", May, Flag),
    ];
    const NEXT: (&str, Need, Kind) = ("nextCursor", May, Text);
    Some(match method {
        Method::CallTool => &[("content", Must, List(&Content)), ("isError", May, Flag)],
        Method::ListTools => &[("tools", Must, List(&Kind::Shape(TOOL))), NEXT],
        Method::ListResources => &[("resources", Must, List(&Kind::Shape(RESOURCE))), NEXT],
        Method::ListResourceTemplates => &[
            ("resourceTemplates", Must, List(&Kind::Shape(TEMPLATE))),
            NEXT,
        ],
        Method::ReadResource => &[("contents", Must, List(&Contents))],
        Method::ListPrompts => &[("prompts", Must, List(&Kind::Shape(PROMPT))), NEXT],
        Method::GetPrompt => &[
            ("description", May, Text),
            ("messages", Must, List(&Kind::Shape(MESSAGE))),
        ],
        Method::Complete => &[("completion", Must, Kind::Shape(COMPLETION))],
        _ => return None,
    })
}

/// The shape of a content block of this type.
fn block(kind: &str) -> Shape {
    const CONTENTS: (&str, Need, Kind) = ("resource", Must, Contents);
    match kind {
        "text" => &[("text", Must, Text)],
        "image" | "audio" => &[("data", Must, Text), ("mimeType", Must, Text)],
        "resource" => &[CONTENTS],
        "resource_link" => &[("uri", Must, Text), ("name", Must, Text)],
        _ => &[],
    }
}

/// Checks a result against the shape of its method (R-S14-05).
///
/// # Errors
/// The first member that does not fit.
pub(super) fn check(method: Method, result: &str) -> Result<(), RequestError> {
    let Some(shape) = shape(method) else {
        return Ok(());
    };
    fits(&Kind::Shape(shape), result).map_err(|Misfit { path, why }| {
        let path = path.trim_start_matches('.');
        let why = match path {
            "" => format!("the result of {}: {why}", method.name()),
            path => format!("the result of {}: {path}: {why}", method.name()),
        };
        RequestError::BadResult(why.into())
    })
}

/// The path of a member that does not fit, and the reason.
struct Misfit {
    path: String,
    why: &'static str,
}

impl Misfit {
    fn within(mut self, place: impl std::fmt::Display) -> Self {
        let mut path = String::new();
        let _ = write!(path, "{place}");
        path.push_str(&self.path);
        self.path = path;
        self
    }
}

fn fits(kind: &Kind, value: &str) -> Result<(), Misfit> {
    let is = |good: bool, why| match good {
        true => Ok(()),
        false => Err(Misfit {
            path: String::new(),
            why,
        }),
    };
    let object = || is(value.starts_with('{'), "not an object");
    let members = |shape: Shape| {
        object()?;
        for (name, need, kind) in shape {
            let found = match reader::find(value, name) {
                None if *need == May => Ok(()),
                None => is(false, "it is missing"),
                Some(value) => fits(kind, value),
            };
            found.map_err(|misfit| misfit.within(format_args!(".{name}")))?;
        }
        Ok(())
    };
    match kind {
        Text => is(value.starts_with('"'), "not a string"),
        Flag => is(matches!(value, "true" | "false"), "not a boolean"),
        Number => is(
            value.starts_with(|c: char| c == '-' || c.is_ascii_digit()),
            "not a number",
        ),
        Object => object(),
        Kind::Shape(shape) => members(shape),
        List(kind) => {
            is(value.starts_with('['), "not an array")?;
            let mut all = reader::elements(value).enumerate();
            all.try_for_each(|(at, value)| {
                fits(kind, value).map_err(|misfit| misfit.within(format_args!("[{at}]")))
            })
        }
        Content => {
            members(&[("type", Must, Text)])?;
            let kind = reader::find(value, "type").and_then(reader::as_str);
            members(block(&kind.unwrap_or_default()))
        }
        Contents => {
            members(&[
                ("uri", Must, Text),
                ("mimeType", May, Text),
                ("text", May, Text),
                ("blob", May, Text),
            ])?;
            let has = |name| reader::find(value, name).is_some();
            is(has("text") != has("blob"), "it has not either text or blob")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-S14-05, R-RPC-13: valid results, and errors that name the invalid member.
    #[test]
    fn a_result_is_as_the_revisions_say() {
        use Method::{CallTool, Complete, GetPrompt, ListPrompts, ListTools, Ping, ReadResource};
        for (method, good) in [
            (CallTool, r#"{"content":[]}"#),
            (
                CallTool,
                r#"{"content":[{"type":"text","text":"x"},{"type":"hologram","x":1}],"isError":false,"mine":1}"#,
            ),
            (
                CallTool,
                r#"{"content":[{"type":"resource","resource":{"uri":"a:b","blob":""}},{"type":"resource_link","uri":"a:b","name":"b"}],"structuredContent":[1]}"#,
            ),
            (
                ListTools,
                r#"{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"1"}"#,
            ),
            (
                ListPrompts,
                r#"{"prompts":[{"name":"a"},{"name":"b","arguments":[{"name":"c"}]}]}"#,
            ),
            (Complete, r#"{"completion":{"values":["a"],"total":-1}}"#),
            (Ping, r#"[]"#),
        ] {
            assert_eq!(check(method, good), Ok(()), "{good}");
        }
        for (method, bad, why) in [
            (CallTool, r#"{}"#, "tools/call: content: it is missing"),
            (CallTool, r#"[]"#, "tools/call: not an object"),
            (
                CallTool,
                r#"{"content":"x"}"#,
                "tools/call: content: not an array",
            ),
            (
                CallTool,
                r#"{"content":[{"type":"text","text":"x"},{"type":"text"}]}"#,
                "tools/call: content[1].text: it is missing",
            ),
            (
                CallTool,
                r#"{"content":[{"type":"image","data":1,"mimeType":"a/b"}]}"#,
                "tools/call: content[0].data: not a string",
            ),
            (
                CallTool,
                r#"{"content":[{}]}"#,
                "tools/call: content[0].type: it is missing",
            ),
            (
                CallTool,
                r#"{"content":[{"type":"resource","resource":{"uri":"a:b"}}]}"#,
                "tools/call: content[0].resource: it has not either text or blob",
            ),
            (
                CallTool,
                r#"{"content":[],"isError":1}"#,
                "tools/call: isError: not a boolean",
            ),
            (
                ListTools,
                r#"{"tools":[{"name":"a","inputSchema":"x"}]}"#,
                "tools/list: tools[0].inputSchema: not an object",
            ),
            (
                ListTools,
                r#"{"tools":[],"nextCursor":7}"#,
                "tools/list: nextCursor: not a string",
            ),
            (
                ReadResource,
                r#"{"contents":[{"uri":"a:b","text":"x","blob":""}]}"#,
                "resources/read: contents[0]: it has not either text or blob",
            ),
            (
                GetPrompt,
                r#"{"messages":[{"role":"user","content":"x"}]}"#,
                "prompts/get: messages[0].content: not an object",
            ),
            (
                Complete,
                r#"{"completion":{"values":["a",7]}}"#,
                "completion/complete: completion.values[1]: not a string",
            ),
        ] {
            let why = format!("the result of {why}");
            assert_eq!(
                check(method, bad),
                Err(RequestError::BadResult(why.into())),
                "{bad}"
            );
        }
    }
}
