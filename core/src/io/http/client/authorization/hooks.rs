//! What a login needs of the program.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Mutex;

use futures_util::future::{Either, select};
use mcpbolt_oauth::client::{AssertionRequest, AuthorizationPage, DeviceCode};

use crate::io::login::{Callback, open_browser};
use crate::sync::lock;

/// A future of [`LoginHooks`]. Its error is told to whoever waits for the login.
pub type Hooked<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// What a login needs of the program. Each function has a default that refuses, so that a program writes
/// those that its grant needs.
pub trait LoginHooks: Send + Sync + 'static {
    /// Where the user's browser is to come back to: `https`, or `http` on this machine. `known` is the
    /// address that the client is registered with, if it is; the same one saves a registration.
    fn redirect_uri(&self, known: Option<String>) -> Hooked<'_, String> {
        let _ = known;
        refuse("this program has no address that a browser could come back to")
    }

    /// Has the user open the page, and waits until the browser came back to its redirect URI. Returns the
    /// URL with which it came, or the query of that URL.
    fn authorize(&self, page: AuthorizationPage) -> Hooked<'_, String> {
        let _ = page;
        refuse("this program cannot show a page to the user")
    }

    /// Shows the user a code and the page where to enter it on another device.
    fn show_device_code(&self, code: DeviceCode) -> Hooked<'_, ()> {
        let _ = code;
        refuse("this program cannot show a code to the user")
    }

    /// A signed assertion for the authorization server: the token of a workload, or the ID token of the
    /// user, as the grant needs it.
    fn assertion(&self, request: AssertionRequest) -> Hooked<'_, String> {
        let _ = request;
        refuse("this program gives no assertions")
    }
}

fn refuse<T: Send + 'static>(why: &'static str) -> Hooked<'static, T> {
    Box::pin(std::future::ready(Err(why.to_owned())))
}

/// Most addresses that are open for browsers at a time; the oldest is closed.
const MAX_OPEN: usize = 16;

/// Shows a page to the user. If the program learns with which address the browser came back, it gives that
/// address; with `None`, the address is waited for.
type Opener = Box<dyn Fn(AuthorizationPage) -> Hooked<'static, Option<String>> + Send + Sync>;

/// A user with a browser on this machine, which comes back to an address that is open for one login.
pub struct WithBrowser {
    open: Mutex<Vec<Callback>>,
    opener: Opener,
}

impl WithBrowser {
    /// A browser that the program opens. If `open` learns with which address the browser came back, it
    /// returns that address. Its future is dropped once the browser came back by itself.
    pub fn opened_by<F>(open: impl Fn(AuthorizationPage) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Option<String>, String>> + Send + 'static,
    {
        Self {
            open: Mutex::default(),
            opener: Box::new(move |page| Box::pin(open(page))),
        }
    }
}

/// The browser of the platform.
impl Default for WithBrowser {
    fn default() -> Self {
        Self::opened_by(|page| {
            let opened = open_browser(&page.url).map_err(|error| {
                format!("no browser can be opened ({error}); log in with `mcpbolt login`, or use the grant for other devices")
            });
            std::future::ready(opened.map(|()| None))
        })
    }
}

impl fmt::Debug for WithBrowser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WithBrowser(..)")
    }
}

impl LoginHooks for WithBrowser {
    fn redirect_uri(&self, known: Option<String>) -> Hooked<'_, String> {
        Box::pin(async move {
            let again = known.and_then(|known| Callback::bind_again(&known).ok());
            let callback = match again {
                Some(callback) => callback,
                None => Callback::bind().map_err(|error| error.to_string())?,
            };
            let redirect_uri = callback.redirect_uri().to_owned();
            let mut open = lock(&self.open);
            if open.len() >= MAX_OPEN {
                open.remove(0);
            }
            open.push(callback);
            Ok(redirect_uri)
        })
    }

    fn authorize(&self, page: AuthorizationPage) -> Hooked<'_, String> {
        Box::pin(async move {
            let callback = {
                let mut open = lock(&self.open);
                let at = open
                    .iter()
                    .position(|it| it.redirect_uri() == page.redirect_uri);
                at.map(|at| open.remove(at))
            };
            let callback = callback.ok_or("too many logins at a time")?;
            let back = pin!(callback.wait(&page.state));
            let opened = (self.opener)(page.clone());
            match select(back, opened).await {
                Either::Left((answer, _)) => answer.map_err(|error| error.to_string()),
                Either::Right((opened, back)) => match opened? {
                    Some(address) => Ok(address),
                    None => back.await.map_err(|error| error.to_string()),
                },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::block_on;

    #[test]
    fn the_oldest_of_too_many_addresses_is_closed() {
        let browser = WithBrowser::default();
        let uris: Vec<_> = (0..=MAX_OPEN)
            .map(|_| block_on(browser.redirect_uri(None)).unwrap())
            .collect();
        assert_eq!(lock(&browser.open).len(), MAX_OPEN);
        let page = AuthorizationPage {
            url: "https://login.example".into(),
            redirect_uri: uris[0].clone(),
            state: "s".into(),
        };
        let why = block_on(browser.authorize(page)).unwrap_err();
        assert_eq!(why, "too many logins at a time");
    }
}
