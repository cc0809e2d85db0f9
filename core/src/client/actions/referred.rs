//! Data that an answer refers to, in parts (R-ACT-29).

use serde_json::json;

use super::{ActionAnswer, ActionCall, ActionFailure};
use crate::action::{GET_DATA, REFERENCE};
use crate::connection::ActOptions;
use crate::error::RequestError;
use crate::json::{number, reader};
use crate::limits::MAX_REFERRED_BYTES;

/// Shortest part, in bytes, but for the last: who gives less at a time would never come to an end.
const LEAST_PART: usize = 256;

impl ActionCall {
    /// The answer with its data, where it only refers to them. Each part is a call of its own, which has
    /// the time, the credentials and the retries of this one.
    ///
    /// # Errors
    /// When they are not there any more, or are not what the answer says of them.
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
                ..self.client.action(GET_DATA, &params)
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
