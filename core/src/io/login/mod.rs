//! What a program on a user's machine needs to log the user in: a browser, and the address that the browser
//! comes back to.

mod browser;
mod callback;

pub use browser::open_browser;
pub use callback::Callback;
