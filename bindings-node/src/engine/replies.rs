//! A program's answers, and its notifications on behalf of a request.

use mcpbolt::connection::Progress;
use mcpbolt::mcp::{ErrorKind, LogLevel};
use napi_derive::napi;

use super::connection::EngineConnection;
use crate::error::{Result, unknown};

/// Parses the name of an error kind in the TypeScript API.
fn kind(name: &str) -> Result<ErrorKind> {
    Ok(match name {
        "invalid request" => ErrorKind::InvalidRequest,
        "method not found" => ErrorKind::MethodNotFound,
        "invalid params" => ErrorKind::InvalidParams,
        "tool not found" => ErrorKind::ToolNotFound,
        "prompt not found" => ErrorKind::PromptNotFound,
        "not found" => ErrorKind::ResourceNotFound,
        "missing capability" => ErrorKind::MissingClientCapability,
        "rejected" => ErrorKind::Rejected,
        "internal" => ErrorKind::Internal,
        name => {
            return Err(unknown("kind", name));
        }
    })
}

#[napi]
impl EngineConnection {
    /// Answers with a result, a JSON object; returns whether the request was open.
    #[napi(catch_unwind)]
    pub fn respond(&mut self, call: u32, result: String) -> bool {
        let Some(call) = self.calls.remove(call) else {
            return false;
        };
        let mut replies = self.inner.handle().replies();
        replies.result(&call.reply, |out| out.object(&result));
        true
    }

    /// Answers with an error of that kind or, without a kind, with that code.
    #[napi(catch_unwind)]
    pub fn fail(
        &mut self,
        call: u32,
        kind: Option<String>,
        code: f64,
        message: String,
        data: Option<String>,
    ) -> Result<bool> {
        let kind = kind.as_deref().map(self::kind).transpose()?;
        let Some(call) = self.calls.remove(call) else {
            return Ok(false);
        };
        let (mut replies, data) = (self.inner.handle().replies(), data.as_deref());
        match kind {
            Some(kind) => replies.error(&call.reply, kind, &message, data),
            None => replies.error_code(&call.reply, code as i64, &message, data),
        }
        Ok(true)
    }

    /// Reports progress on a request, if its sender asked for it.
    #[napi(catch_unwind)]
    pub fn progress(&self, call: u32, progress: f64, total: Option<f64>, message: Option<String>) {
        if let Some(call) = self.calls.get(call) {
            let message = message.as_deref();
            let news = Progress {
                progress,
                total,
                message,
            };
            self.inner.handle().replies().progress(&call.reply, news);
        }
    }

    /// Sends a log message, if the sender of a request wants messages of that level.
    #[napi(catch_unwind)]
    pub fn log(
        &self,
        call: u32,
        level: String,
        data: String,
        logger: Option<String>,
    ) -> Result<()> {
        let level = LogLevel::parse(&level).ok_or_else(|| unknown("level", &level))?;
        if let Some(call) = self.calls.get(call) {
            let mut replies = self.inner.handle().replies();
            replies.log(&call.reply, level, logger.as_deref(), &data);
        }
        Ok(())
    }
}
