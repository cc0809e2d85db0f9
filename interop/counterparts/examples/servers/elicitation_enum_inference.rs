//! Asks the user to choose: a form with one and several choices, with and without titles.

use mcpbolt::mcp::ErrorKind;
use mcpbolt::prelude::*;
use tokio::sync::Mutex;
use tracing_subscriber::EnvFilter;

#[data]
#[derive(Debug, Default)]
enum TitledEnum {
    #[schemars(title = "Title for the first value")]
    #[default]
    FirstValue,
    #[schemars(title = "Title for the second value")]
    SecondValue,
}

#[data]
#[derive(Debug)]
enum UntitledEnum {
    First,
    Second,
    Third,
}

fn second_and_third() -> Vec<UntitledEnum> {
    vec![UntitledEnum::Second, UntitledEnum::Third]
}

/// User information
#[data]
#[derive(Debug)]
struct SelectEnumForm {
    single_select_untitled: UntitledEnum,
    /// Description for single select enum
    #[schemars(title = "Single Select Titled", default)]
    single_select_titled: TitledEnum,
    #[serde(default = "second_and_third")]
    multi_select_untitled: Vec<UntitledEnum>,
    /// Multi Select Description
    #[schemars(title = "Multi Select Titled")]
    multi_select_titled: Vec<TitledEnum>,
}

impl std::fmt::Display for SelectEnumForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "Current Selections:")?;
        writeln!(
            f,
            "Single Select Untitled: {:?}",
            self.single_select_untitled
        )?;
        writeln!(f, "Single Select Titled: {:?}", self.single_select_titled)?;
        writeln!(f, "Multi Select Untitled: {:?}", self.multi_select_untitled)?;
        writeln!(f, "Multi Select Titled: {:?}", self.multi_select_titled)
    }
}

struct EnumForm {
    selection: Mutex<SelectEnumForm>,
}

#[tools]
impl EnumForm {
    fn new() -> Self {
        let selection = Mutex::new(SelectEnumForm {
            single_select_untitled: UntitledEnum::First,
            single_select_titled: TitledEnum::FirstValue,
            multi_select_untitled: vec![UntitledEnum::Second],
            multi_select_titled: vec![TitledEnum::SecondValue],
        });
        Self { selection }
    }

    /// Get current enum selection form
    #[tool]
    async fn get_enum_form(&self) -> String {
        self.selection.lock().await.to_string()
    }

    /// Set enum selection via elicitation form
    #[tool]
    async fn set_enum_form(&self, context: Context) -> Result<String, HandlerError> {
        let filled = context.fill_in("Please provide your selection").await;
        let failed = |error| {
            let why = format!("Elicitation failed: {error}");
            HandlerError::protocol(ErrorKind::Internal, why)
        };
        let Some(form) = filled.map_err(failed)? else {
            return Ok("Elicitation cancelled by user.".to_owned());
        };
        let mut selection = self.selection.lock().await;
        *selection = form;
        Ok(format!("Updated Selection:\n{selection}"))
    }
}

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .init();
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("http://127.0.0.1:8000/mcp");
    let server = Server::builder("enum-selection", "1.0.0")
        .instructions("Simple server demonstrating elicitation for enum selection")
        .per_session(EnumForm::new);
    Ok(server.build()?.run_at(address)?)
}
