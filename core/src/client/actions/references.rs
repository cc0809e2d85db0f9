//! Fetches data that an answer refers to, in parts (R-ACT-29).

use serde_json::json;

use super::{ActionAnswer, ActionCall, ActionFailure};
use crate::action::{GET_DATA, REFERENCE};
use crate::connection::ActOptions;
use crate::error::RequestError;
use crate::json::{number, reader};
use crate::limits::MAX_REFERRED_BYTES;

/// Minimum size of a part in bytes, except the last: with smaller parts a server could make the
/// fetch endless.
const LEAST_PART: usize = 256;

impl ActionCall {
    /// Returns the answer with its data, fetched if the answer only refers to them. Each part is a
    /// separate call with the timeout, credentials and retries of this one.
    ///
    /// # Errors
    /// When the data no longer exist or do not match the reference.
    pub(super) async fn whole(&self, answer: ActionAnswer) -> Result<ActionAnswer, ActionFailure> {
        let Some(reference) = reader::find(&answer.data, REFERENCE).filter(|_| !self.is_part)
        else {
            return Ok(answer);
        };
        let bad = |why| ActionFailure::Request(RequestError::BadAnswer(why));
        let whole = |value: Option<&str>| value.and_then(number::as_u64);
        let id = reader::find(reference, "id").and_then(reader::as_str);
        let bytes = whole(reader::find(reference, "bytes"));
        let (Some(id), Some(bytes)) = (id, bytes) else {
            return Err(bad(
                "it refers to its data in another way than is known here",
            ));
        };
        if bytes > MAX_REFERRED_BYTES as u64 {
            return Err(bad("it refers to data that are longer than allowed"));
        }
        let mut data = String::new();
        while (data.len() as u64) < bytes {
            let params = json!({"reference": id, "offset": data.len()});
            let part = ActionCall {
                options: ActOptions {
                    timeout: self.options.timeout,
                    metadata: self.options.metadata.clone(),
                    ..ActOptions::default()
                },
                retry: Some(self.retry.unwrap_or_default()),
                breaker: self.breaker,
                is_part: true,
                ..Self::new(&self.client, GET_DATA, &params)
            };
            let part = part.await?;
            let text = reader::find(&part.data, "part").and_then(reader::as_str);
            let is_last = |text: &str| (data.len() + text.len()) as u64 == bytes;
            let text = text.filter(|text| text.len() >= LEAST_PART || is_last(text));
            data.push_str(
                &text.ok_or_else(|| bad("a part of its data is missing, or very short"))?,
            );
        }
        if data.len() as u64 != bytes || crate::json::validate(data.as_bytes(), 1024).is_err() {
            return Err(bad("the parts of its data are not what it refers to"));
        }
        Ok(ActionAnswer { data, ..answer })
    }
}
