//! Texts of results and arguments that are masked on their way.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::super::middleware::{
    ChainAnswer, ChainNotification, ChainRequest, ChainResponse, Middleware, NextHop,
    RelayDirection, refusal,
};
use super::super::params::push;
use crate::error::{PeerError, RequestError};
use crate::json::{reader, string};
use crate::mcp::Method;
use crate::mcp::code::INTERNAL_ERROR;

/// Longest result, and longest arguments, that are masked unless [`Masking::max_bytes`] says otherwise.
const MAX_BYTES: usize = 16 << 20;

/// The texts that [`Masking`] looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaskedTexts {
    /// Those of results, of errors, of log messages and of what is told of tasks.
    Results,
    /// Those of arguments.
    Arguments,
    /// Both.
    Both,
}

impl FromStr for MaskedTexts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "results" => Ok(Self::Results),
            "arguments" => Ok(Self::Arguments),
            "both" => Ok(Self::Both),
            _ => Err(format!(
                "{text:?} are no texts to mask; write results, arguments or both"
            )),
        }
    }
}

/// Middleware that masks texts: in results of tools, prompts and resources, in tasks, completions, messages of errors and log messages,
/// or in arguments. Names of members, types, URIs, base64 data and whatever the protocol needs stay as they are; so does each byte of a
/// message in which nothing is masked. Lists, reports of progress and questions of the server are not masked.
///
/// ```
/// use mcpbolt::chain::{Masking, MaskedTexts};
/// use mcpbolt::policy::Redaction;
/// let credentials = Redaction::new().secret("hunter2");
/// let masking = Masking::new(MaskedTexts::Results, move |text| credentials.text(text));
/// # let _ = masking;
/// ```
pub struct Masking {
    texts: MaskedTexts,
    mask: Box<Mask>,
    max_bytes: usize,
}

type Mask = dyn for<'t> Fn(&'t str) -> Cow<'t, str> + Send + Sync;

impl Masking {
    /// Masks what `mask` returns a changed text for. `mask` runs on threads that must not block; its time should be linear in the
    /// length of the text.
    pub fn new(
        texts: MaskedTexts,
        mask: impl for<'t> Fn(&'t str) -> Cow<'t, str> + Send + Sync + 'static,
    ) -> Self {
        Self {
            texts,
            mask: Box::new(mask),
            max_bytes: MAX_BYTES,
        }
    }

    /// Sets the length of a result, or of params, above which nothing is passed on but an error. Default: 16 MiB.
    #[must_use]
    pub fn max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    fn does(&self, texts: MaskedTexts) -> bool {
        self.texts == texts || self.texts == MaskedTexts::Both
    }

    /// An object with some members masked by `mask`; `None` if it stays as it is.
    fn object(object: &str, mask: impl Fn(&str, &str) -> Option<String>) -> Option<String> {
        let (mut out, mut is_changed) = (vec![b'{'], false);
        for (name, value) in reader::members(object) {
            let masked = name.decode().ok().and_then(|name| mask(&name, value));
            is_changed |= masked.is_some();
            push(&mut out, name.raw(), masked.as_deref().unwrap_or(value));
        }
        out.push(b'}');
        let masked = String::from_utf8(out).ok()?;
        is_changed.then_some(masked)
    }

    /// A value with its texts masked; `None` if it stays as it is. One pass over valid JSON.
    fn value(&self, json: &str, kept: Kept) -> Option<String> {
        let (mut out, mut done, mut at, mut name) = (Vec::new(), 0, 0, "");
        while let Some(found) = json.get(at..)?.find('"') {
            let from = at + found;
            let to = string_end(json, from)?;
            let token = json.get(from..to)?;
            // What has ended in between had the name.
            if json.get(at..from)?.contains(['}', ']']) {
                name = "";
            }
            at = to;
            if json.get(to..)?.trim_start().starts_with(':') {
                name = token.trim_matches('"');
                continue;
            }
            if kept == Kept::OfContent && STRUCTURE.contains(&name) {
                continue;
            }
            // A text that is no Unicode, by lone surrogates, cannot be looked at: its place is all that is passed on.
            let masked = match reader::as_str(token) {
                Some(text) => match (self.mask)(&text) {
                    masked if masked == text => continue,
                    masked => masked.into_owned(),
                },
                None => "\u{fffd}".to_owned(),
            };
            out.extend_from_slice(json.get(done..from)?.as_bytes());
            string::append(&mut out, &masked);
            done = to;
        }
        if done == 0 {
            return None;
        }
        out.extend_from_slice(json.get(done..)?.as_bytes());
        String::from_utf8(out).ok()
    }

    fn fits(&self, json: &str, what: &str) -> Result<(), RequestError> {
        if json.len() <= self.max_bytes {
            return Ok(());
        }
        let (length, max) = (json.len(), self.max_bytes);
        Err(refusal(
            INTERNAL_ERROR,
            format!("{what} of {length} bytes cannot be masked: at most {max} can"),
        ))
    }

    fn result(&self, answer: ChainResponse) -> Result<ChainResponse, RequestError> {
        self.fits(answer.result(), "a result")?;
        let masked = self.whole(answer.result());
        Ok(masked.map_or(answer, ChainResponse::new))
    }

    /// A result with its texts masked; `None` if it stays as it is.
    fn whole(&self, result: &str) -> Option<String> {
        Self::object(result, |name, value| match name {
            "content" | "contents" | "messages" => self.value(value, Kept::OfContent),
            "structuredContent" | "statusMessage" | "description" => {
                self.value(value, Kept::Nothing)
            }
            "completion" => self.member(value, "values"),
            // Those of a task, and of a list of tasks.
            "result" | "task" => self.whole(value),
            "error" => Self::object(value, |name, value| match name {
                "message" | "data" => self.value(value, Kept::Nothing),
                _ => None,
            }),
            "tasks" => self.tasks(value),
            _ => None,
        })
    }

    /// A list of tasks with their texts masked; `None` if it stays as it is.
    fn tasks(&self, list: &str) -> Option<String> {
        let masked = reader::elements(list).map(|task| self.whole(task));
        let masked: Vec<_> = masked.collect();
        masked.iter().any(Option::is_some).then(|| {
            let tasks = reader::elements(list).zip(&masked);
            let tasks = tasks.map(|(task, masked)| masked.as_deref().unwrap_or(task));
            format!("[{}]", tasks.collect::<Vec<_>>().join(","))
        })
    }

    /// Params with all texts of one member masked; `None` if they stay as they are.
    fn member(&self, params: &str, member: &str) -> Option<String> {
        Self::object(params, |name, value| match name == member {
            true => self.value(value, Kept::Nothing),
            false => None,
        })
    }

    fn error(&self, error: RequestError) -> RequestError {
        match error {
            RequestError::Peer(error) => RequestError::Peer(PeerError {
                message: (self.mask)(&error.message).as_ref().into(),
                data: error.data.map(|data| {
                    let masked = self.value(&data, Kept::Nothing);
                    masked.map_or(data, String::into_boxed_str)
                }),
                code: error.code,
            }),
            error => error,
        }
    }
}

/// What stays as it is.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    Nothing,
    /// The members of content that are no texts.
    OfContent,
}

/// The members of content that clients act on.
const STRUCTURE: [&str; 8] = [
    "type", "role", "mimeType", "uri", "blob", "data", "taskId", "status",
];

/// The end of the string that begins at `from`.
fn string_end(json: &str, from: usize) -> Option<usize> {
    let bytes = json.as_bytes();
    let mut at = from + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

impl Middleware for Masking {
    fn keeps_lists(&self) -> bool {
        true
    }

    fn request<'a>(&'a self, mut request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        let has_texts = matches!(
            request.known_method(),
            Some(
                Method::CallTool
                    | Method::ReadResource
                    | Method::GetPrompt
                    | Method::Complete
                    | Method::GetTask
                    | Method::TaskResult
                    | Method::CancelTask
                    | Method::ListTasks
            )
        );
        if request.direction() == RelayDirection::ToClient {
            return next.run(request);
        }
        Box::pin(async move {
            if has_texts && self.does(MaskedTexts::Arguments) {
                self.fits(request.params(), "params")?;
                if let Some(masked) = self.member(request.params(), "arguments") {
                    request.set_params(&masked)?;
                }
            }
            let answer = next.run(request).await;
            if !self.does(MaskedTexts::Results) {
                return answer;
            }
            match answer {
                Ok(answer) if has_texts => self.result(answer),
                answer => answer.map_err(|error| self.error(error)),
            }
        })
    }

    fn notification(&self, mut notification: ChainNotification) -> Option<ChainNotification> {
        let method = Method::parse(&notification.method);
        let Some(params) = notification
            .params
            .as_deref()
            .filter(|_| self.does(MaskedTexts::Results))
        else {
            return Some(notification);
        };
        let masked = match method {
            Some(Method::LogMessage) => {
                self.fits(params, "a log message").ok()?;
                self.member(params, "data")
            }
            Some(Method::Tasks | Method::TaskStatus) => {
                self.fits(params, "a notification of a task").ok()?;
                self.whole(params)
            }
            _ => None,
        };
        if masked.is_some() {
            notification.params = masked;
        }
        Some(notification)
    }
}

impl fmt::Debug for Masking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Masking")
            .field("texts", &self.texts)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_masked_and_everything_else_stays_byte_for_byte() {
        let masking = Masking::new(MaskedTexts::Results, |text| {
            match text.contains("secret") || text.contains('"') {
                true => Cow::Owned(text.replace("secret", "\"*\"\n")),
                false => Cow::Borrowed(text),
            }
        });
        let result = |json: &str| {
            let answer = masking.result(ChainResponse::new(json)).unwrap();
            answer.result().to_owned()
        };
        for kept in [
            r#"{"content": [ {"type":"text","text":"plain" , "n":1.50e3}],"isError" :false}"#,
            r#"{"content":[{"type":"image","data":"secret","mimeType":"secret"}]}"#,
            r#"{"nextCursor":"secret","requestState":"secret","_meta":{"a":"secret"}}"#,
            r#"{"content":[{"type":"text","text":"\\\\"}],"structuredContent":{"secret":1,"a":[]}}"#,
            "{}",
        ] {
            assert_eq!(result(kept), kept);
        }
        assert_eq!(
            result(r#"{"content":[{"type":"text","text":"a s\u0065cret \\"}], "n":1.0}"#),
            r#"{"content":[{"type":"text","text":"a \"*\"\n \\"}],"n":1.0}"#
        );
        assert_eq!(
            result(r#"{"structuredContent":{"data":["secret",{"type" : "secret"}]}}"#),
            r#"{"structuredContent":{"data":["\"*\"\n",{"type" : "\"*\"\n"}]}}"#
        );
        assert_eq!(
            result(
                r#"{"result":{"content":[{"type":"secret"},"secret"],"structuredContent":{"type":"secret"}}}"#
            ),
            r#"{"result":{"content":[{"type":"secret"},"\"*\"\n"],"structuredContent":{"type":"\"*\"\n"}}}"#
        );
        assert_eq!(
            result(r#"{"contents":[{"uri":"x:secret","text":"\ud800secret"}]}"#),
            "{\"contents\":[{\"uri\":\"x:secret\",\"text\":\"\u{fffd}\"}]}"
        );
    }

    #[test]
    fn what_is_told_of_tasks_and_completions_is_masked() {
        let masking = Masking::new(MaskedTexts::Results, |text| {
            Cow::Owned(text.replace("secret", "*"))
        });
        for (given, masked) in [
            (
                r#"{"status":"failed","error":{"code":1,"message":"secret","data":["secret"]}}"#,
                r#"{"status":"failed","error":{"code":1,"message":"*","data":["*"]}}"#,
            ),
            (
                r#"{"tasks":[{"taskId":"secret"},{"statusMessage":"secret"}],"nextCursor":"secret"}"#,
                r#"{"tasks":[{"taskId":"secret"},{"statusMessage":"*"}],"nextCursor":"secret"}"#,
            ),
            (
                r#"{"task":{"taskId":"secret","statusMessage":"secret"}}"#,
                r#"{"task":{"taskId":"secret","statusMessage":"*"}}"#,
            ),
            (
                r#"{"completion":{"values":["secret"],"total":1}}"#,
                r#"{"completion":{"values":["*"],"total":1}}"#,
            ),
        ] {
            let answer = masking.result(ChainResponse::new(given)).unwrap();
            assert_eq!(answer.result(), masked);
        }
        for (method, given, masked) in [
            (
                "notifications/tasks",
                r#"{"taskId":"secret","result":{"content":[{"type":"text","text":"secret"}]}}"#,
                r#"{"taskId":"secret","result":{"content":[{"type":"text","text":"*"}]}}"#,
            ),
            (
                "notifications/tasks",
                r#"{"error":{"code":1,"message":"secret"}}"#,
                r#"{"error":{"code":1,"message":"*"}}"#,
            ),
            (
                "notifications/tasks/status",
                r#"{"status":"working","statusMessage":"secret"}"#,
                r#"{"status":"working","statusMessage":"*"}"#,
            ),
        ] {
            let direction = RelayDirection::ToClient;
            let told = ChainNotification::new(direction, method, Some(given));
            let told = masking.notification(told).unwrap();
            assert_eq!(told.params.as_deref(), Some(masked));
        }
    }

    #[test]
    fn a_result_that_is_too_long_to_be_masked_is_not_passed_on() {
        let masking = Masking::new(MaskedTexts::Results, |text| Cow::Borrowed(text)).max_bytes(10);
        assert!(masking.result(ChainResponse::new("{}")).is_ok());
        let long = masking.result(ChainResponse::new(r#"{"content":[]}"#));
        let why = long.unwrap_err().to_string();
        assert!(why.contains("14 bytes cannot be masked"), "{why}");
    }
}
