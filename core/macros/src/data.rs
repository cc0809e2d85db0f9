//! `#[data]` on a struct or enum.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, Result};

pub fn expand(options: &TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !options.is_empty() {
        let error =
            "`#[data]` has no options; those of serde and schemars have attributes of their own";
        return Err(Error::new_spanned(options, error));
    }
    let item: DeriveInput = syn::parse2(item)?;
    Ok(quote! {
        #[derive(
            ::mcpbolt::server::serde::Serialize,
            ::mcpbolt::server::serde::Deserialize,
            ::mcpbolt::server::schemars::JsonSchema,
        )]
        #[serde(crate = "::mcpbolt::server::serde")]
        #[schemars(crate = "::mcpbolt::server::schemars")]
        #item
    })
}
