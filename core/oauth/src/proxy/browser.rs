//! Cookies: what ties the steps of a login to one browser.

/// The browser that was shown the page; its form must come from there.
pub const PAGE: &str = "__Host-mcpbolt-page";
/// The browser that was sent to the identity provider; the answer must come from there. It is set only once
/// there is consent.
pub const LOGIN: &str = "__Host-mcpbolt-login";
/// The clients that were approved in this browser, sealed.
pub const APPROVALS: &str = "__Host-mcpbolt-approvals";

/// A cookie to set, for this host alone.
#[derive(Clone, Copy, Debug)]
pub struct Cookie<'a> {
    pub name: &'static str,
    pub value: &'a str,
    /// In seconds; 0 removes the cookie.
    pub lifetime: u64,
}

impl Cookie<'_> {
    pub fn header(&self) -> String {
        let Self {
            name,
            value,
            lifetime,
        } = self;
        format!("{name}={value}; Path=/; Max-Age={lifetime}; Secure; HttpOnly; SameSite=Lax")
    }
}

/// The value of a cookie in a header `Cookie`. One that is there twice is none: another host may have set it.
pub fn cookie<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let values = header.split(';').filter_map(|pair| {
        let (own, value) = pair.trim().split_once('=')?;
        (own == name).then_some(value)
    });
    let mut values = values.fuse();
    let value = values.next()?;
    values.next().is_none().then_some(value)
}
