//! Asks the user at a terminal.

use std::io::BufRead as _;
use std::sync::Mutex;

use futures::channel::oneshot;
use mcpbolt::io::login::{
    AuthorizationPage, Callback, DeviceCode, Hooked, LoginHooks, open_browser,
};

use crate::shown;

/// How the user sees the page of the authorization server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In a browser on this machine.
    Browser,
    /// In any browser; the user pastes the address where it ends.
    Paste,
    /// Not at all: there has to be a login.
    Refuse,
}

/// A user at a terminal.
pub struct Terminal {
    way: Way,
    callback: Mutex<Option<Callback>>,
}

impl Terminal {
    pub fn new(way: Way) -> Self {
        Self {
            way,
            callback: Mutex::default(),
        }
    }

    fn bind(&self, known: Option<&str>) -> Result<String, String> {
        if self.way == Way::Refuse {
            return Err(
                "there is no login for this server; run `mcpbolt login` with its URL".into(),
            );
        }
        let again = known.and_then(|known| Callback::bind_again(known).ok());
        let callback = again.map_or_else(Callback::bind, Ok);
        let callback = callback.map_err(|error| error.to_string())?;
        let uri = callback.redirect_uri().to_owned();
        let mut open = self
            .callback
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        // A pasted address is never called.
        *open = (self.way == Way::Browser).then_some(callback);
        Ok(uri)
    }
}

impl LoginHooks for Terminal {
    fn redirect_uri(&self, known: Option<String>) -> Hooked<'_, String> {
        Box::pin(std::future::ready(self.bind(known.as_deref())))
    }

    fn authorize(&self, page: AuthorizationPage) -> Hooked<'_, String> {
        Box::pin(async move {
            let url = shown::line(&page.url);
            let callback = self.callback.lock().map(|mut open| open.take());
            let Some(callback) = callback.ok().flatten() else {
                eprintln!("Open this page in any browser:\n\n  {url}\n");
                eprintln!(
                    "In the end the browser shows an address that it cannot load. Paste that address here:"
                );
                return line().await;
            };
            match open_browser(&page.url) {
                Ok(()) => eprintln!(
                    "Your browser opens a page. If it does not, open this one:\n\n  {url}\n"
                ),
                Err(error) => eprintln!(
                    "No browser can be opened here ({error}). Open this page in a browser on this machine, or log in with --paste or --device:\n\n  {url}\n"
                ),
            }
            callback
                .wait(&page.state)
                .await
                .map_err(|error| error.to_string())
        })
    }

    fn show_device_code(&self, code: DeviceCode) -> Hooked<'_, ()> {
        let page = shown::line(&code.verification_uri);
        eprintln!(
            "On any device, open this page and enter the code {}:\n\n  {page}\n",
            shown::line(&code.user_code)
        );
        if let Some(complete) = &code.verification_uri_complete {
            eprintln!(
                "Or open this page, which has the code:\n\n  {}\n",
                shown::line(complete)
            );
        }
        eprintln!(
            "The code is valid for {} minutes.",
            code.expires_in.as_secs().div_ceil(60)
        );
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The next line of standard input, which somebody may take minutes to type.
async fn line() -> Result<String, String> {
    let (sender, typed) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        let _ = sender.send(read.map(|_| line.trim().to_owned()));
    });
    let read = typed.await.map_err(|_| "nothing was pasted".to_owned())?;
    let line = read.map_err(|error| error.to_string())?;
    match line.is_empty() {
        true => Err("nothing was pasted".into()),
        false => Ok(line),
    }
}
