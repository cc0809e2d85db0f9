//! `WWW-Authenticate`, read and written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test: panicking is the report"
)]

use mcpbolt_oauth::challenge::Challenge;

/// A challenge in one line: the scheme, the token, the parameters.
fn shown(challenge: &Challenge, names: &[&str]) -> String {
    let mut line = challenge.scheme().to_owned();
    if let Some(token) = challenge.token68() {
        line += &format!(" {token}");
    }
    for name in names {
        if let Some(value) = challenge.get(name) {
            line += &format!(" {name}:{value}");
        }
    }
    line
}

const NAMES: [&str; 7] = [
    "realm",
    "scope",
    "error",
    "error_description",
    "resource_metadata",
    "algs",
    "a",
];

#[test]
fn challenges_are_read_as_servers_write_them() {
    let address = "https://mcp.example/.well-known/oauth-protected-resource/mcp?x=1,2";
    let quoted = format!(r#"Bearer resource_metadata="{address}", scope="a b""#);
    let both = format!("Bearer resource_metadata:{address}");
    let table: &[(&[&str], &[&str])] = &[
        (&[], &[]),
        (&[""], &[]),
        (&[" , ,\t,"], &[]),
        (&["Bearer"], &["Bearer"]),
        (&["bearer  "], &["bearer"]),
        (&["Bearer,"], &["Bearer"]),
        (&[&quoted], &[&format!("Bearer scope:a b {}", &both[7..])]),
        // R-AUC-03: DPoP challenges name the metadata, too.
        (
            &[r#"DPoP algs="ES256", error="use_dpop_nonce""#],
            &["DPoP error:use_dpop_nonce algs:ES256"],
        ),
        (&[r#"Bearer REALM="x""#], &["Bearer realm:x"]),
        (
            &[r#"Bearer realm = "x" , scope= y"#],
            &["Bearer realm:x scope:y"],
        ),
        (&["Bearer scope=read"], &["Bearer scope:read"]),
        (
            &["Bearer resource_metadata=https://a.example/x"],
            &["Bearer resource_metadata:https://a.example/x"],
        ),
        (
            &[r#"Basic realm="x", Bearer scope="y""#],
            &["Basic realm:x", "Bearer scope:y"],
        ),
        (
            &[r#"Basic realm="x""#, r#"Bearer scope="y""#],
            &["Basic realm:x", "Bearer scope:y"],
        ),
        (
            &["Negotiate, Bearer error=x"],
            &["Negotiate", "Bearer error:x"],
        ),
        (&["Negotiate YWJj"], &["Negotiate YWJj"]),
        (&["Negotiate YWI=, Bearer"], &["Negotiate YWI=", "Bearer"]),
        (
            &["Negotiate YQ== , Bearer a=b"],
            &["Negotiate YQ==", "Bearer a:b"],
        ),
        (&["Negotiate a/b+c._~-"], &["Negotiate a/b+c._~-"]),
        (
            &[r#"Bearer error_description="say \"hi\" \\ there""#],
            &[r#"Bearer error_description:say "hi" \ there"#],
        ),
        (
            &[r#"Bearer realm="a, Basic realm=b", scope=c"#],
            &["Bearer realm:a, Basic realm=b scope:c"],
        ),
        (
            &[r#"Bearer scope="first", scope="second""#],
            &["Bearer scope:first"],
        ),
        (&[r#"Bearer scope="""#], &["Bearer scope:"]),
        (
            &["Bearer error_description=\"caf\u{e9}\""],
            &["Bearer error_description:caf\u{e9}"],
        ),
        // Malformed: skipped, and what follows is read.
        (&[r#"Bearer realm="no end, scope=x"#], &["Bearer"]),
        (&[r#"Bearer realm="ends in \"#], &["Bearer"]),
        (&["scope=x, Bearer"], &["Bearer"]),
        (&["=, Bearer scope=x"], &["Bearer scope:x"]),
        (&[r#""quoted, comma", Bearer scope=x"#], &["Bearer scope:x"]),
        (&["Bearer scope=, error=x"], &["Bearer scope= error:x"]),
        (&[r#"Bearer realm=a"b, c", scope=x"#], &["Bearer scope:x"]),
        (&["Bearer @@@, scope=x"], &["Bearer scope:x"]),
        // A parameter does not reach into another header.
        (&["Bearer", "scope=x"], &["Bearer"]),
    ];
    for (headers, expected) in table {
        let read = Challenge::parse_all(headers.iter().map(|it| it.as_bytes()));
        let read: Vec<_> = read.iter().map(|it| shown(it, &NAMES)).collect();
        assert_eq!(read, *expected, "{headers:?}");
    }
}

#[test]
fn what_is_written_is_read_alike() {
    for value in [
        "",
        "a",
        "a b",
        r#"q"uo\te"#,
        "a,b=c",
        "\\",
        "\"",
        " lead",
        "https://x/?a=b,c#d",
    ] {
        let challenge = Challenge::new("Bearer")
            .with("realm", "r")
            .with("scope", value);
        let written = challenge.to_string();
        assert_eq!(
            Challenge::parse_all([written.as_bytes()]),
            [challenge],
            "{written}"
        );
    }
    // No header is broken in two, whatever a description says.
    let hostile =
        Challenge::new("Bearer").with("error_description", "a\r\nSet-Cookie: b\u{0}\u{fc}");
    assert_eq!(
        hostile.to_string(),
        r#"Bearer error_description="a  Set-Cookie: b ?""#
    );
    assert_eq!(Challenge::new("DPoP").to_string(), "DPoP");
    let negotiate = Challenge::parse_all([&b"Negotiate YQ=="[..]]);
    assert_eq!(negotiate[0].to_string(), "Negotiate YQ==");
}

#[test]
fn hostile_headers_are_read_in_bounds() {
    let many = "Bearer, ".repeat(10_000);
    assert_eq!(Challenge::parse_all([many.as_bytes()]).len(), 16);
    let long = format!("Bearer {}", "a=b,".repeat(1_000));
    let long = Challenge::parse_all([long.as_bytes()]);
    assert_eq!(long[0].to_string().matches("a=").count(), 32);
    let text = format!("Bearer a=\"{}\"", "x".repeat(1 << 20));
    assert_eq!(Challenge::parse_all([text.as_bytes()])[0].get("a"), None);
    let headers = vec![&b"Bearer realm=\"0123456789\""[..]; 100_000];
    assert_eq!(Challenge::parse_all(headers).len(), 16);
    // Every cut and every byte in every place of a valid header.
    let header = br#"Basic YQ==, Bearer realm="a\"b", scope=c"#;
    for at in 0..header.len() {
        let _ = Challenge::parse_all([&header[..at], &header[at..]]);
        for byte in 0..=255 {
            let mut changed = *header;
            changed[at] = byte;
            for challenge in Challenge::parse_all([&changed[..]]) {
                let written = challenge.to_string();
                assert!(
                    written.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                    "{written}"
                );
            }
        }
    }
}
