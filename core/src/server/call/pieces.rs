//! Tool results in pieces: the first piece answers the call, the others follow as notifications
//! (`experimental.streaming`; R-XST-01, R-XST-02).

use std::sync::atomic::{AtomicU64, Ordering};

use super::context::Context;
use crate::connection::Handle;
use crate::json::{number, reader, string};
use crate::mcp::{Era, Revision};
use crate::model::{Content, ToolResult, write_array};

/// The notification that carries a piece.
const PIECE: &str = "notifications/_experimental/stream";

/// Sends the pieces after the first. Dropping it tells the client that there are no more.
#[derive(Debug)]
pub struct Pieces {
    handle: Handle,
    revision: Revision,
    id: String,
    sent: u64,
    ended: bool,
}

impl Context {
    /// Answers a tool call with a first piece, if the client asked for pieces and the server
    /// [declared](crate::server::Builder::experimental) `streaming` with `tools`. Send the other pieces
    /// through the returned [`Pieces`]; the handler's own result is then discarded. `None` if the
    /// result must be sent whole.
    ///
    /// ```
    /// use mcpbolt::mcp::Profile;
    /// use mcpbolt::server::{Arguments, Content, Context, Server, Tool};
    ///
    /// let server = Server::builder("tales", "1.0.0")
    ///     .profile(Profile::Extended)
    ///     .experimental("streaming", r#"{"tools":true}"#)
    ///     .tool(Tool::new("tell"), |_: Arguments, context: Context| async move {
    ///         match context.begin_pieces(&[Content::text("Once upon a time ")]) {
    ///             Some(mut pieces) => pieces.send(&[Content::text("there was an engine.")]),
    ///             None => return "Once upon a time there was an engine.",
    ///         }
    ///         ""
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn begin_pieces(&self, first: &[Content]) -> Option<Pieces> {
        static STREAMS: AtomicU64 = AtomicU64::new(1);
        if !self.takes_pieces() || self.is_cancelled() {
            return None;
        }
        let id = format!("stream-{}", STREAMS.fetch_add(1, Ordering::Relaxed));
        let result = ToolResult {
            content: first.to_vec(),
            ..ToolResult::default()
        };
        let mut replies = self.connection().replies();
        replies.result(self.reply_to(), |writer| {
            result.write(writer);
            writer.raw(
                "_experimental",
                &format!("{{\"streamId\":\"{id}\",\"hasMore\":true}}"),
            );
        });
        replies.submit();
        Some(Pieces {
            handle: self.connection().clone(),
            revision: self.revision(),
            id,
            sent: 0,
            ended: false,
        })
    }

    /// R-XST-01, R-CAP-09
    fn takes_pieces(&self) -> bool {
        let Some(message) = self
            .message()
            .filter(|_| self.revision().era() == Era::Handshake)
        else {
            return false;
        };
        let config = self.connection().config();
        let is_true = |json: &str, path: &[&str]| reader::find_path(json, path) == Some("true");
        let params = message.params().unwrap_or("{}");
        let declared = config.capabilities(self.revision());
        let theirs = self.connection().peer().is_some_and(|peer| {
            reader::find_path(&peer.capabilities, &["experimental", "streaming"]).is_some()
        });
        is_true(params, &["_experimental", "stream"])
            && is_true(declared, &["experimental", "streaming", "tools"])
            && (theirs || config.profile.overlay().experimental)
    }
}

impl Pieces {
    /// Sends the next piece.
    pub fn send(&mut self, content: &[Content]) {
        self.say(content, true);
    }

    /// Sends the last piece.
    pub fn end(mut self, content: &[Content]) {
        self.say(content, false);
        self.ended = true;
    }

    fn say(&mut self, content: &[Content], has_more: bool) {
        self.sent += 1;
        let mut params = b"{\"streamId\":".to_vec();
        string::append(&mut params, &self.id);
        params.extend_from_slice(b",\"seq\":");
        number::append(&mut params, self.sent as i64);
        params.extend_from_slice(b",\"content\":");
        write_array(&mut params, content, |block, out| {
            block.write(out, self.revision)
        });
        params.extend_from_slice(format!(",\"hasMore\":{has_more}}}").as_bytes());
        let params = String::from_utf8(params).unwrap_or_default();
        // Cannot fail for its params: they are an object.
        let _ = self.handle.notify(PIECE, Some(&params));
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if !self.ended {
            self.say(&[], false);
        }
    }
}
