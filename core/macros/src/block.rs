//! `#[tools]` on an `impl` block.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ImplItem, ItemImpl, Meta, Result};

use crate::handler::{Handler, Kind};

pub fn expand(options: &TokenStream, mut block: ItemImpl) -> Result<TokenStream> {
    if !options.is_empty() {
        return Err(Error::new_spanned(options, "`#[tools]` has no options"));
    }
    if let Some((_, of, _)) = &block.trait_ {
        let error = "`#[tools]` stands on an `impl` block of the type itself, without a trait";
        return Err(Error::new_spanned(of, error));
    }
    let mut handlers = Vec::new();
    let mut errors = None;
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else {
            continue;
        };
        let mut marks = function
            .attrs
            .extract_if(.., |attribute| Kind::of(attribute).is_some());
        let mark = marks.next();
        let second = marks.next();
        drop(marks);
        if let Some(second) = second {
            let error = "a function is one of tool, resource, prompt and completion";
            combine(&mut errors, Error::new_spanned(second, error));
        }
        let Some((kind, mark)) = mark.and_then(|mark| Some((Kind::of(&mark)?, mark))) else {
            continue;
        };
        let options = match mark.meta {
            Meta::List(list) => list.tokens,
            _ => TokenStream::new(),
        };
        match Handler::read(kind, options, &function.attrs, &mut function.sig) {
            Ok(handler) => handlers.push(handler),
            Err(error) => combine(&mut errors, error),
        }
    }
    if handlers.is_empty() && errors.is_none() {
        let error = "no function here has `#[tool]`, `#[resource]`, `#[prompt]` or `#[completion]`";
        combine(&mut errors, Error::new_spanned(&block.self_ty, error));
    }
    let mut targets: Vec<_> = handlers
        .iter_mut()
        .map(|handler| handler.target.take())
        .collect();
    for target in targets.iter_mut().flatten() {
        if let Err(error) = target.resolve(&handlers) {
            combine(&mut errors, error);
        }
    }
    let mut added = TokenStream::new();
    for (mut handler, target) in handlers.into_iter().zip(targets) {
        handler.target = target;
        match handler.expand(&quote!(Self::)) {
            Ok(statement) => added.extend(statement),
            Err(error) => combine(&mut errors, error),
        }
    }
    let offer = match errors {
        Some(errors) => errors.to_compile_error(),
        None => {
            let (generics, _, bounds) = block.generics.split_for_impl();
            let own = &block.self_ty;
            quote! {
                #[automatically_derived]
                impl #generics ::mcpbolt::server::Offer for #own #bounds {
                    fn offer(self, __server: ::mcpbolt::server::Builder) -> ::mcpbolt::server::Builder {
                        let __owner = ::mcpbolt::server::extract::Owner::Shared(::std::sync::Arc::new(self));
                        ::mcpbolt::server::OfferMethods::offer_methods(__owner, __server)
                    }
                }

                #[automatically_derived]
                impl #generics ::mcpbolt::server::OfferMethods for #own #bounds {
                    fn offer_methods(
                        __owner: ::mcpbolt::server::extract::Owner<Self>,
                        __server: ::mcpbolt::server::Builder,
                    ) -> ::mcpbolt::server::Builder {
                        #added
                        __server
                    }
                }
            }
        }
    };
    Ok(quote!(#block #offer))
}

fn combine(errors: &mut Option<Error>, error: Error) {
    match errors {
        Some(errors) => errors.combine(error),
        None => *errors = Some(error),
    }
}
