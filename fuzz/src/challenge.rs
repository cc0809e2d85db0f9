//! The laws of `WWW-Authenticate`: whatever headers say, what is read stays within bounds, is written as one
//! header, and is read back as it was written.

use mcpbolt_oauth::challenge::Challenge;

use crate::random::Random;

/// Headers as servers write them, to be damaged.
const HEADERS: [&str; 12] = [
    "Bearer",
    r#"Bearer realm="mcp", error="invalid_token", error_description="say \"hi\" \\ there""#,
    r#"Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp?x=1,2", scope="a b""#,
    "Bearer resource_metadata=https://mcp.example/x, scope = read",
    r#"DPoP algs="ES256 RS256", error="use_dpop_nonce""#,
    r#"Bearer error="insufficient_scope", scope="files:read files:write", DPoP algs=ES256"#,
    "Negotiate",
    "Negotiate YII==, Basic realm=x",
    r#"Basic realm="a, Digest b=c", charset="UTF-8", , Digest qop="auth", nonce=abc"#,
    r#"scope=x, Bearer error="#,
    "\"quoted, comma\", Bearer scope=\"caf\u{e9}\"",
    r#"Bearer realm="no end, scope=x"#,
];
/// The parser reads no more of all headers together.
const MAX_BYTES: usize = 16 << 10;
const MAX_CHALLENGES: usize = 16;

/// One or two damaged headers.
pub fn damaged(random: &mut Random) {
    let headers: Vec<Vec<u8>> = (0..=random.below(2))
        .map(|_| {
            let mut header = random.pick(&HEADERS).as_bytes().to_vec();
            if random.below(8) == 0 {
                header = [header, random.pick(&HEADERS).as_bytes().to_vec()].join(&b", "[..]);
            }
            (0..random.below(5)).for_each(|_| random.mutate(&mut header));
            header
        })
        .collect();
    headers_keep_the_laws(&headers.iter().map(Vec::as_slice).collect::<Vec<_>>());
}

/// The laws on headers, which zero bytes separate.
pub fn headers(bytes: &[u8]) {
    headers_keep_the_laws(&bytes.split(|&byte| byte == 0).collect::<Vec<_>>());
}

fn headers_keep_the_laws(headers: &[&[u8]]) {
    let read = Challenge::parse_all(headers.iter().copied());
    assert!(read.len() <= MAX_CHALLENGES, "{} challenges", read.len());
    let len: usize = headers.iter().map(|header| header.len()).sum();
    let written: Vec<String> = read.iter().map(ToString::to_string).collect();
    assert!(written.iter().map(String::len).sum::<usize>() <= 4 * len);
    for (challenge, written) in read.iter().zip(&written) {
        challenge_is_legal(challenge, written);
    }
    // Nothing of one header belongs to a challenge of another.
    if len < MAX_BYTES && read.len() < MAX_CHALLENGES {
        let one_by_one = headers
            .iter()
            .flat_map(|header| Challenge::parse_all([*header]));
        assert!(one_by_one.eq(read.iter().cloned()), "{headers:?}");
    }
    // All in one header are as many again.
    let joined = written.join(", ");
    if joined.len() < MAX_BYTES {
        let again = Challenge::parse_all([joined.as_bytes()]);
        let again: Vec<String> = again.iter().map(ToString::to_string).collect();
        assert_eq!(again, written, "{headers:?}");
    }
}

/// What is written is one header, and is read as the same challenge.
fn challenge_is_legal(challenge: &Challenge, written: &str) {
    let fits = |byte: u8| (b' '..=b'~').contains(&byte);
    assert!(written.bytes().all(fits), "{written:?}");
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let scheme = challenge.scheme();
    assert!(
        !scheme.is_empty() && scheme.bytes().all(is_token),
        "{scheme:?}"
    );
    assert!(challenge.is(&scheme.to_ascii_uppercase()));
    if written.len() >= MAX_BYTES {
        return;
    }
    let again = Challenge::parse_all([written.as_bytes()]);
    let [again] = &*again else {
        panic!("{again:?} of {written:?}");
    };
    assert_eq!(again.to_string(), written);
    assert_eq!(again.token68(), challenge.token68());
    // Names are found in any case; values that a header may have are not changed.
    for name in ["realm", "scope", "error", "resource_metadata", "algs"] {
        let value = challenge.get(name);
        assert_eq!(challenge.get(&name.to_ascii_uppercase()), value);
        if let Some(value) = value.filter(|value| value.bytes().all(fits))
            && challenge.token68().is_none()
        {
            assert_eq!(again.get(name), Some(value), "{written:?}");
        }
    }
}
