//! `#[tool]` and its like on a function, which stays what it is. Beside it comes a type of the same name, since
//! functions and types have names of their own; `handlers!` makes a value of it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemFn, Result};

use crate::handler::{Handler, Kind};

pub fn expand(kind: Kind, options: TokenStream, mut function: ItemFn) -> Result<TokenStream> {
    if let Some(receiver) = function.sig.receiver() {
        let name = kind.name();
        let error = format!(
            "put `#[tools]` on the `impl` block: `#[{name}]` alone stands on functions without `self`"
        );
        return Err(Error::new_spanned(receiver, error));
    }
    let handler = Handler::read(kind, options, &function.attrs, &mut function.sig)?;
    let added = handler.expand(&TokenStream::new())?;
    let (name, visibility) = (&function.sig.ident, &function.vis);
    Ok(quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility struct #name {}

        #[automatically_derived]
        impl ::mcpbolt::server::Offer for #name {
            fn offer(self, __server: ::mcpbolt::server::Builder) -> ::mcpbolt::server::Builder {
                #added
                __server
            }
        }
    })
}
