//! `#[tool]` and its like on a function: a unit struct takes its place, which is added to a server and still
//! called like the function.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, FnArg, ItemFn, Result, ReturnType};

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
    let (name, visibility) = (&function.sig.ident, function.vis.clone());
    let documentation = function
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"));
    let documentation: Vec<_> = documentation.cloned().collect();
    function.vis = syn::Visibility::Inherited;
    let inputs = function.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) => Some(&input.ty),
        FnArg::Receiver(_) => None,
    });
    let inputs: Vec<_> = inputs.collect();
    let output = match &function.sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, output) => quote!(#output),
    };
    // The type of an async function's future has no name.
    let called = function.sig.asyncness.is_none().then(|| {
        quote! {
            impl ::core::ops::Deref for #name {
                type Target = fn(#(#inputs),*) -> #output;

                fn deref(&self) -> &Self::Target {
                    const CALLED: fn(#(#inputs),*) -> #output = #name;
                    &CALLED
                }
            }
        }
    });
    Ok(quote! {
        #(#documentation)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #name;

        const _: () = {
            #function

            #[automatically_derived]
            impl ::mcpbolt::server::Offer for #name {
                fn offer(self, __server: ::mcpbolt::server::Builder) -> ::mcpbolt::server::Builder {
                    #added
                    __server
                }
            }

            #called
        };
    })
}
