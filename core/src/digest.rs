//! SHA-256 as text.

use hmac_sha256::Hash;

/// The digest in full, `sha256:` and 64 digits.
#[cfg(any(feature = "skills", all(feature = "server", feature = "client")))]
pub(crate) fn sha256(of: &[u8]) -> String {
    format!("sha256:{}", hex(&Hash::hash(of)))
}

/// Half of the digest, 32 digits: a short name for a long text, which no other text has.
#[cfg(feature = "server")]
pub(crate) fn short(of: &[u8]) -> String {
    hex(&Hash::hash(of)[..16])
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(all(test, feature = "server", feature = "client"))]
mod tests {
    use super::*;

    /// FIPS 180-4.
    #[test]
    fn the_digest_of_nothing_is_known() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), format!("sha256:{empty}"));
        assert_eq!(short(b""), empty[..32]);
    }
}
