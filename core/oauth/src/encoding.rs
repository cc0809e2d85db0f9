//! Texts as OAuth encodes them: queries, HTTP Basic, random values.

use base64::Engine as _;
use base64::engine::general_purpose;
use url::form_urlencoded;

/// A URL with further parameters in its query, and otherwise as it was written, without its fragment.
#[cfg(any(feature = "client", feature = "proxy"))]
pub fn with_parameters<'a>(
    url: &str,
    parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters);
    let url = url.split('#').next().unwrap_or_default();
    let mark = if url.contains('?') { '&' } else { '?' };
    format!("{url}{mark}{}", query.finish())
}

/// The value of `Authorization` by which a client authenticates. Id and secret are encoded as in a form before
/// they are joined (RFC 6749, section 2.3.1).
pub fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    format!("Basic {}", general_purpose::STANDARD.encode(pair))
}

/// A text of 256 random bits, of characters that URLs, cookies and PKCE verifiers allow; `None` if the system
/// has no randomness.
#[cfg(any(feature = "client", feature = "proxy"))]
pub fn random() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}
