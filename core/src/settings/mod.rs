//! Options and definitions as JSON objects, for bindings to other languages and for configuration files.
//!
//! Each structure here reads one JSON object with members in camel case, and turns into the options or
//! builders of this crate. Members that are absent or `null` take this crate's defaults; unknown members
//! are errors. The type parameter says in what unit the object gives times: [`Seconds`] or
//! [`Milliseconds`].
//!
//! ```
//! use mcpbolt::settings::{self, Seconds, ServeSettings};
//!
//! let settings: ServeSettings<Seconds> = settings::read(r#"{"maxSessions": 50, "headerTimeout": 2.5}"#)?;
//! let address = "http://127.0.0.1:8000/mcp".parse()?;
//! assert_eq!(settings.serve(&address)?.http.header_timeout.as_millis(), 2500);
//!
//! let wrong = settings::read::<ServeSettings<Seconds>>(r#"{"headerTimeout": -1}"#).err();
//! assert_eq!(wrong.map(|error| error.to_string()).as_deref(), Some("headerTimeout: a time is a positive number of seconds"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod action;
mod chain;
mod client;
mod connect;
mod definition;
mod error;
#[cfg(feature = "oauth")]
mod login;
mod rules;
mod serve;
mod server;
mod time;

use serde::{Deserialize, Deserializer};

pub use self::action::{ActionSettings, BreakerSettings, FallbackAction, RetrySettings};
pub use self::chain::{ExternalSettings, PoolSettings, check_joined};
pub use self::client::ClientSettings;
pub use self::connect::{AuthSettings, ConnectSettings, PemSource, ResumeSettings};
pub use self::definition::{
    PromptArgumentDefinition, PromptDefinition, ResourceDefinition, ToolDefinition,
};
pub use self::error::SettingsError;
#[cfg(feature = "oauth")]
pub use self::login::{
    GrantName, IdentityProviderSettings, LoginSettings, SigningKeySettings, StoreSettings,
};
pub use self::rules::{BreakerRule, MaskingRule, RetryRule, matching_tools};
#[cfg(feature = "redis")]
pub use self::serve::SharedStoreSettings;
pub use self::serve::{ServeSettings, TlsSettings};
pub use self::server::{ListScope, ReferenceSettings, ServerSettings, TaskSettings};
pub use self::time::{Milliseconds, Seconds};

/// Reads one JSON object.
///
/// # Errors
/// When the text is not such an object; the error names the member.
pub fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, SettingsError> {
    let mut reader = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        SettingsError::at(field.trim_start_matches('.'), error.into_inner())
    })
}

/// Parses a string member of a type that parses from a string.
fn parsed<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    let text = Option::<String>::deserialize(deserializer)?;
    let text = text.map(|text| text.parse().map_err(serde::de::Error::custom));
    text.transpose()
}

/// Replaces a default with a given value.
fn set<T>(place: &mut T, given: Option<impl Into<T>>) {
    if let Some(given) = given {
        *place = given.into();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::connection::OpeningMode;
    use crate::server::{Resource, Tool};

    fn wrong<T: for<'a> Deserialize<'a>>(json: &str) -> String {
        match read::<T>(json) {
            Ok(_) => panic!("{json} is accepted"),
            Err(error) => error.to_string(),
        }
    }

    fn http() -> crate::io::Address {
        "http://127.0.0.1:0/mcp".parse().unwrap()
    }

    #[test]
    fn absent_members_take_the_defaults_of_the_crate() {
        use crate::io::{ConnectOptions, ServeOptions};
        let serve = read::<ServeSettings<Seconds>>("{}").unwrap();
        let serve = serve.serve(&http());
        let usual = format!("{:?}", ServeOptions::default());
        assert_eq!(format!("{:?}", serve.unwrap()), usual);
        let connect = read::<ConnectSettings<Seconds>>("{}").unwrap().connect();
        let usual = format!("{:?}", ConnectOptions::default());
        assert_eq!(format!("{:?}", connect.unwrap()), usual);
        let tool = read::<ToolDefinition<Seconds>>(r#"{"name":"a"}"#).unwrap();
        assert_eq!(Tool::from(tool), Tool::new("a"));
        let resource = read::<ResourceDefinition>(r#"{"uri":"a:b"}"#).unwrap();
        assert_eq!(Resource::from(resource), Resource::new("a:b", "a:b"));
    }

    #[test]
    fn members_are_read_in_the_unit_of_the_language() {
        let json = r#"{"path":"/a","sessionTtl":1500,"heartbeat":20,"maxDepth":7,"keepaliveInterval":5,
            "trustedProxies":["10.0.0.0/8"],"tls":{"certificate":"c","key":"k"},"threads":2}"#;
        let options = read::<ServeSettings<Milliseconds>>(json).unwrap();
        let options = options.serve(&http()).unwrap();
        assert_eq!(options.http.session_ttl, Duration::from_millis(1500));
        assert_eq!(options.http.heartbeat, Some(Duration::from_millis(20)));
        let interval = options.http.limits.keepalive_interval;
        assert_eq!(interval, Some(Duration::from_millis(5)));
        assert_eq!(
            (options.http.limits.max_depth, options.threads),
            (7, Some(2))
        );
        assert_eq!(options.http.trusted_proxies.len(), 1);
        assert!(options.tls.is_some_and(|tls| tls.clients.is_none()));
        let json = r#"{"auth":{"type":"apiKey","key":"k"},"resume":{"first":0.5,"longest":2,"attempts":3},
            "proxy":"","rootCertificates":[{"text":"PEM"}],"readTimeout":1}"#;
        let options = read::<ConnectSettings<Seconds>>(json).unwrap().connect();
        let options = options.unwrap();
        assert_eq!(options.auth, crate::io::Auth::api_key("k"));
        assert_eq!(options.http.resume.first, Duration::from_millis(500));
        assert_eq!(options.http.proxy, crate::io::http::Proxy::None);
        assert_eq!(options.root_certificates, [b"PEM"]);
    }

    #[test]
    fn a_server_and_its_tools_are_described() {
        let json = r#"{"name":"s","version":"1","pageSize":3,"cacheLists":2,"cacheScope":"public","profile":"chain",
            "taskLimits":{"perOwner":4},"maxBytes":1000,"references":{"overBytes":9},"policy":{"toolTimeout":5},
            "extensions":{"com.example/a":{"b":1}},"actions":true,"instructions":"none"}"#;
        let settings = read::<ServerSettings<Seconds>>(json).unwrap();
        let mut registry = settings.registry().unwrap();
        let tool = r#"{"name":"t","inputSchema":{"type":"object"},"taskSupport":"optional","_meta":{"a": 1}}"#;
        let tool = Tool::from(read::<ToolDefinition<Seconds>>(tool).unwrap());
        assert_eq!(tool.meta.as_deref(), Some(r#"{"a": 1}"#));
        registry.add_tool(tool).unwrap();
        let config = settings.config(&registry).unwrap();
        assert!(config.actions && settings.policy().unwrap().is_some());
        assert_eq!(config.instructions.as_deref(), Some("none"));
    }

    #[test]
    fn a_client_opens_as_its_revision_does() {
        let opening = |json| read::<ClientSettings<Seconds>>(json).unwrap().opening;
        assert_eq!(opening(r#"{"name":"c","version":"1"}"#), None);
        let json = r#"{"name":"c","version":"1","opening":"actions","roots":[{"uri":"file:///a"}],"timeout":3}"#;
        assert_eq!(opening(json), Some(OpeningMode::Actions));
        assert!(
            read::<ClientSettings<Seconds>>(json)
                .unwrap()
                .builder()
                .is_ok()
        );
    }

    #[test]
    fn errors_name_the_member() {
        let cases = [
            (
                wrong::<ServeSettings<Seconds>>(r#"{"maxSession":1}"#),
                "maxSession: unknown field",
            ),
            (
                wrong::<ServeSettings<Seconds>>(r#"{"sessionTtl":-1}"#),
                "sessionTtl: a time is a positive number of seconds",
            ),
            (
                wrong::<ServeSettings<Milliseconds>>(r#"{"grace":-1}"#),
                "grace: a time is a positive number of milliseconds",
            ),
            (
                wrong::<ServeSettings<Seconds>>(r#"{"trustedProxies":["x"]}"#),
                "trustedProxies: \"x\" is not an address",
            ),
            (
                wrong::<ConnectSettings<Seconds>>(
                    r#"{"resume":{"first":"x","longest":1,"attempts":1}}"#,
                ),
                "resume.first: invalid type",
            ),
            (
                wrong::<ServerSettings<Seconds>>(r#"{"name":"s","version":"1","maxBytes":0}"#),
                "maxBytes: invalid value",
            ),
            (
                wrong::<ServerSettings<Seconds>>(r#"{"name":"s","version":"1","stateKey":[1]}"#),
                "stateKey",
            ),
            (
                wrong::<ServerSettings<Seconds>>(r#"{"name":"s","version":"1","profile":"x"}"#),
                "profile: not a profile",
            ),
            (
                wrong::<ClientSettings<Seconds>>(r#"{"name":"c","version":"1","revision":"x"}"#),
                "revision: not a protocol revision",
            ),
            (
                wrong::<ClientSettings<Seconds>>(r#"{"name":"c","version":"1","opening":"x"}"#),
                "opening: unknown variant",
            ),
            (
                wrong::<ToolDefinition<Seconds>>(r#"{"name":"t","taskSupport":"x"}"#),
                "taskSupport: unknown variant",
            ),
        ];
        for (error, begin) in cases {
            assert!(error.starts_with(begin), "{error}");
            assert!(!error.contains(" at line "), "{error}");
        }
        let host = read::<ServeSettings<Seconds>>(r#"{"hosts":["http://a"]}"#).unwrap();
        let wrong = host.serve(&http()).unwrap_err().to_string();
        assert!(wrong.starts_with("hosts: "), "{wrong}");
    }

    #[cfg(feature = "redis")]
    #[test]
    fn a_store_is_refused_where_there_are_no_sessions() {
        for (address, why) in [
            (
                "tcp:127.0.0.1:0",
                "store: a store shares sessions of HTTP, and tcp:127.0.0.1:0 has none",
            ),
            (
                "stdio:",
                "store: a store shares sessions of HTTP, and stdio: has none",
            ),
            ("http://127.0.0.1:0/mcp", "store.keys: "),
        ] {
            let store = r#"{"store":{"url":"redis://127.0.0.1:1/0","keys":"/none/keys"}}"#;
            let settings = read::<ServeSettings<Seconds>>(store).unwrap();
            let refused = settings.serve(&address.parse().unwrap()).unwrap_err();
            assert!(refused.to_string().starts_with(why), "{refused}");
        }
    }
}
