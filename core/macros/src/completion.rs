//! The argument that a completion is for: `#[completion(review, language)]` or
//! `#[completion("memo://{id}", id)]`.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, LitStr, Result, Token};

use crate::handler::{Handler, Kind};

/// The argument of a prompt or resource template.
pub struct Target {
    /// The name of the prompt, or the URI template.
    pub of: LitStr,
    argument: Ident,
}

impl Parse for Target {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let of = match input.peek(LitStr) {
            true => input.parse()?,
            false => {
                let name = input.call(Ident::parse_any)?;
                LitStr::new(&name.unraw().to_string(), name.span())
            }
        };
        input.parse::<Token![,]>()?;
        let argument = input.call(Ident::parse_any)?;
        Ok(Self { of, argument })
    }
}

impl Target {
    pub fn argument_name(&self) -> String {
        self.argument.unraw().to_string()
    }

    /// Finds the prompt among the handlers of its block, by the name of its function or its own, and checks that
    /// it has the argument.
    pub fn resolve(&mut self, handlers: &[Handler]) -> Result<()> {
        let of = self.of.value();
        if of.contains(':') {
            return Ok(());
        }
        let mut prompts = handlers
            .iter()
            .filter(|handler| handler.kind == Kind::Prompt);
        let found = prompts.find(|prompt| prompt.function == of || prompt.name.value() == of);
        let Some(prompt) = found else {
            let error = format!("there is no prompt `{of}` in this block");
            return Err(Error::new_spanned(&self.of, error));
        };
        let argument = self.argument_name();
        if !prompt.takes(&argument) {
            let error = format!("the prompt `{of}` has no argument `{argument}`");
            return Err(Error::new(self.argument.span(), error));
        }
        self.of = LitStr::new(&prompt.name.value(), self.of.span());
        Ok(())
    }
}
