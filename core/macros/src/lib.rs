//! The attributes of `mcpbolt`, which re-exports them: programs depend on `mcpbolt` alone.

mod attribute;
mod block;
mod completion;
mod data;
mod function;
mod handler;
mod parameter;
mod template;

use proc_macro::TokenStream;
use syn::parse_macro_input;

use crate::handler::Kind;

/// Makes the functions of an `impl` block tools, resources, prompts and completions of a server.
///
/// Functions with [`#[tool]`](macro@tool), [`#[resource]`](macro@resource), [`#[prompt]`](macro@prompt) or
/// [`#[completion]`](macro@completion) are added by `Builder::with`; all others stay what they are. The value is
/// shared by all calls, or by those of one session (`Builder::per_session`). They run at the same time: functions
/// take `&self`, and what changes is kept in a `Mutex` or an atomic. A function without `self` is fine, too.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
/// use mcpbolt::prelude::*;
///
/// #[data]
/// struct Order {
///     title: String,
///     copies: u32,
/// }
///
/// #[derive(Default)]
/// struct Shop {
///     orders: Mutex<HashMap<u32, String>>,
/// }
///
/// #[tools]
/// impl Shop {
///     /// Orders a book.
///     #[tool(title = "Order")]
///     async fn order(
///         &self,
///         /// The title of the book.
///         title: String,
///         /// How many copies.
///         #[param(default = 1)]
///         copies: u32,
///         context: Context,
///     ) -> Result<Json<Order>, HandlerError> {
///         context.progress(1.0, None, None);
///         let mut orders = self.orders.lock().map_err(|_| HandlerError::new("closed"))?;
///         let number = orders.len() as u32;
///         orders.insert(number, title.clone());
///         Ok(Json(Order { title, copies }))
///     }
///
///     /// An order.
///     #[resource("order://{number}")]
///     fn ordered(&self, number: u32) -> Option<String> {
///         self.orders.lock().ok()?.get(&number).cloned()
///     }
///
///     /// Asks for advice.
///     #[prompt]
///     fn advise(genre: String) -> String {
///         format!("Which {genre} shall I read?")
///     }
///
///     #[completion(advise, genre)]
///     fn genres() -> [&'static str; 3] {
///         ["novel", "poetry", "satire"]
///     }
/// }
///
/// let server = Server::builder("shop", "1.0.0").with(Shop::default()).build()?;
/// # use mcpbolt::client::{Client, block_on};
/// # let client = block_on(Client::builder("me", "1").connect(&server))?;
/// # let order = client.call_tool("order", &serde_json::json!({"title": "Emma"})).wait()?;
/// # assert_eq!(order.text(), r#"{"title":"Emma","copies":1}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    let block = parse_macro_input!(item as syn::ItemImpl);
    finish(block::expand(&options.into(), block))
}

/// Makes a function a tool, in an `impl` block with [`#[tools]`](macro@tools), or by itself: then `handlers!` lists
/// it. The function stays what it is; beside it comes a hidden type of the same name.
///
/// The tool has the function's name, and its documentation as the description. Each argument is a parameter
/// with the argument's name and documentation, unless its type is taken from the call: `Context`, `State<T>`,
/// `Extension<T>`, `Principal`, `CancelToken`, `ProgressReporter`, `Option<Arc<Head>>`, and every type that implements
/// `FromCall`. `Json<T>` takes all parameters in one type. A parameter of type `Option` is not required. `&str` and
/// `Option<&str>` are lent from a `String`, and other references likewise.
///
/// An `async` function may continue on another thread after each `.await`. If the compiler says that its future cannot
/// be sent between threads, end the scope of the value that it names before the `.await`, or use a type that threads
/// can share: `Arc` for `Rc`, a lock of tokio for a guard of `std::sync::Mutex`.
///
/// ```
/// use mcpbolt::prelude::*;
///
/// /// Divides two numbers.
/// #[tool(read_only, open_world = false)]
/// fn divide(
///     /// The dividend.
///     a: f64,
///     /// The divisor, not zero.
///     #[param(default = 1.0)]
///     b: f64,
/// ) -> Result<f64, &'static str> {
///     match b {
///         0.0 => Err("b is zero"),
///         _ => Ok(a / b),
///     }
/// }
///
/// let server = Server::builder("calculator", "1.0.0").with(handlers![divide]).build()?;
/// assert_eq!(divide(1.0, 4.0), Ok(0.25));
/// # use mcpbolt::client::{Client, block_on};
/// # let client = block_on(Client::builder("me", "1").connect(&server))?;
/// # let answer = client.call_tool("divide", &serde_json::json!({"a": 3, "b": 2})).wait()?;
/// # assert_eq!(answer.text(), "1.5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// | option | |
/// |---|---|
/// | `name = "…"`, `title = "…"`, `description = "…"` | instead of the function's name and documentation |
/// | `read_only`, `destructive`, `idempotent`, `open_world` | hints for the client; each may be `= false` |
/// | `blocking` | may block its thread, by files or a database: on a tokio runtime it runs on a thread for blocking work |
/// | `inline` | runs on the thread that reads messages, before the next one: for synchronous functions of microseconds, whose arguments are all parameters |
/// | `output_schema`, `icons`, `meta`, `task_support`, `action` | passed to the method of `Tool` with that name |
///
/// | option of an argument, in `#[param(…)]` | |
/// |---|---|
/// | `default = …`, `default` | the value where a call has none; `default` alone is the type's own |
/// | `name = "…"` | instead of the argument's name |
///
/// The function may be `async`, and returns text, a number, `bool`, `()`, `Content`, `ToolResult`, `Json<T>` whose
/// type gives the output schema, or a `Result` of one of these. Its error may be any error, or a text; the model
/// reads it.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    function(Kind::Tool, options, item)
}

/// Makes a function a resource, or with variables in its URI a resource template (RFC 6570).
///
/// Each variable is an argument of any type that a text can be converted to; a URI in which it cannot be
/// converted is not found. All other arguments are taken from the call, as in [`#[tool]`](macro@tool).
///
/// ```
/// use mcpbolt::prelude::*;
///
/// /// A memo.
/// #[resource("memo://{id}", mime_type = "text/plain")]
/// fn memo(id: u32) -> Option<String> {
///     (id == 7).then(|| "Buy milk.".to_owned())
/// }
///
/// let server = Server::builder("memos", "1.0.0").with(handlers![memo]).build()?;
/// # use mcpbolt::client::{Client, block_on};
/// # let client = block_on(Client::builder("me", "1").connect(&server))?;
/// # assert_eq!(block_on(client.read_resource("memo://7"))?[0].as_text(), Some("Buy milk."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Options: `name`, `title`, `description`, `mime_type`, `size`, `annotations`, `icons`, `meta`.
///
/// The function returns text, `Vec<u8>`, `Json<T>`, `ResourceContents`, or an `Option` or a `Result` of one of
/// these; `None` says that there is no such resource.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    function(Kind::Resource, options, item)
}

/// Makes a function a prompt.
///
/// Its arguments are those of a [`#[tool]`](macro@tool). Clients send texts, which are converted: `"7"` to a
/// number, `"[1, 2]"` to a list.
///
/// ```
/// use mcpbolt::prelude::*;
///
/// /// Asks for a review.
/// #[prompt]
/// fn review(
///     /// The code.
///     code: &str,
///     language: Option<&str>,
/// ) -> String {
///     format!("Review this {}:\n{code}", language.unwrap_or("code"))
/// }
///
/// let server = Server::builder("reviewer", "1.0.0").with(handlers![review]).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Options: `name`, `title`, `description`, `icons`, `meta`.
///
/// The function returns the text of the user's message, `Vec<(Role, Content)>`, `PromptResult`, or a `Result` of
/// one of these.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    function(Kind::Prompt, options, item)
}

/// Makes a function complete an argument of a prompt, or a variable of a resource template, while a user types.
///
/// In the parentheses are the prompt, or the URI template, and the argument. A function without an argument
/// `value` returns all values, and those that begin with what was typed are sent. An argument `value` takes what
/// was typed. The other arguments of the prompt that are filled in are arguments of the function, and so are
/// values of the call, as in [`#[tool]`](macro@tool).
///
/// ```
/// use mcpbolt::prelude::*;
///
/// struct Reviewer;
///
/// #[tools]
/// impl Reviewer {
///     /// Asks for a review.
///     #[prompt]
///     fn review(language: String, edition: String) -> String {
///         format!("Review this {language} of {edition}.")
///     }
///
///     #[completion(review, language)]
///     fn languages() -> [&'static str; 2] {
///         ["python", "rust"]
///     }
///
///     #[completion(review, edition)]
///     fn editions(value: &str, language: Option<String>) -> Vec<String> {
///         match language.as_deref() {
///             Some("rust") => [2015, 2018, 2021, 2024]
///                 .map(|year| year.to_string())
///                 .into_iter()
///                 .filter(|year| year.contains(value))
///                 .collect(),
///             _ => Vec::new(),
///         }
///     }
/// }
///
/// let server = Server::builder("reviewer", "1.0.0").with(Reviewer).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[proc_macro_attribute]
pub fn completion(options: TokenStream, item: TokenStream) -> TokenStream {
    function(Kind::Completion, options, item)
}

/// Makes a struct or enum a type of parameters and results: derives `Serialize` and `Deserialize` of serde and
/// `JsonSchema` of schemars, which the program need not depend on. Documentation becomes descriptions, and the
/// attributes of both crates work.
///
/// ```
/// use mcpbolt::prelude::*;
///
/// /// Where a book is sent.
/// #[data]
/// struct Address {
///     street: String,
///     /// The country, in two letters.
///     #[serde(rename = "countryCode")]
///     country: String,
/// }
///
/// /// Sends a book.
/// #[tool]
/// fn send(title: String, to: Address) -> String {
///     format!("{title} goes to {}, {}", to.street, to.country)
/// }
/// ```
#[proc_macro_attribute]
pub fn data(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(data::expand(&options.into(), item.into()))
}

fn function(kind: Kind, options: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as syn::ItemFn);
    finish(function::expand(kind, options.into(), function))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
