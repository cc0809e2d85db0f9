//! Handlers that take more than parameters: state, the caller, all parameters in one type, own types.

use mcpbolt::connection::Principal;
use mcpbolt::correlate::CancelToken;
use mcpbolt::prelude::*;

pub struct Prices(f64);

/// The revision of the call, as a type of the program's own.
pub struct Revision(String);

impl FromCall for Revision {
    fn from_call(context: &Context) -> Result<Self, HandlerError> {
        Ok(Self(context.revision().to_string()))
    }
}

#[data]
pub struct Purchase {
    /// The book's title.
    title: String,
    #[serde(default)]
    copies: Option<u32>,
}

/// Returns the price of a purchase.
#[tool]
pub async fn price(
    Json(purchase): Json<Purchase>,
    #[param(name = "type", default = "paperback")] binding: String,
    State(prices): State<Prices>,
    caller: Option<Principal>,
    _cancel: CancelToken,
    revision: Revision,
) -> anyhow::Result<String> {
    anyhow::ensure!(binding != "stone", "stone is not sold");
    let copies = f64::from(purchase.copies.unwrap_or(1));
    let total = prices.0 * copies;
    let caller = caller.map_or("anybody".to_owned(), |caller| caller.to_string());
    Ok(format!(
        "{} for {caller}: {total} ({binding}, {})",
        purchase.title, revision.0
    ))
}

pub fn server(prices: bool) -> Result<Server, mcpbolt::server::RegistryError> {
    let server = Server::builder("prices", "1.0.0").with(handlers![price]);
    match prices {
        true => server.state(Prices(7.5)).build(),
        false => server.build(),
    }
}

/// The program's own kind of storage.
pub trait Storage: Send + Sync + 'static {
    fn read(&self) -> String;
}

pub struct Fixed;

impl Storage for Fixed {
    fn read(&self) -> String {
        "fixed".to_owned()
    }
}

pub struct Reader<S>(pub S);

#[tools]
impl<S: Storage> Reader<S> {
    /// Reads.
    #[tool]
    fn read(&self, suffix: Option<&str>, _: Context) -> String {
        self.0.read() + suffix.unwrap_or_default()
    }

    #[cfg(any())]
    #[tool]
    fn missing(&self) -> Nothing {}

    /// Reads, from the shared value.
    #[tool(name = "read.shared")]
    async fn read_shared(self: std::sync::Arc<Self>, parts: &[String]) -> String {
        self.0.read() + &parts.concat()
    }
}
