//! The arguments of a handler's function.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Error, Expr, ExprLit, FnArg, GenericArgument, Lit, Pat, PathArguments, Receiver, Result,
    Signature, Type,
};

use crate::attribute::{Options, documentation};

/// The arguments that are parameters rather than values of the call.
#[derive(Clone, Copy)]
pub enum Named<'a> {
    /// Every argument that is no value of the call is a parameter.
    Any,
    /// There are only parameters, no values of the call.
    Only,
    /// The arguments with these names are parameters, and no others.
    These(&'a [String]),
}

/// An argument.
pub struct Argument {
    /// `None` if it is a pattern without one name.
    pub name: Option<String>,
    description: String,
    default: Option<Expr>,
    /// The type of the value that is taken.
    taken: TokenStream,
    lends: Lends,
    span: Span,
    place: usize,
}

/// The form in which the function gets the value.
#[derive(Clone, Copy)]
enum Lends {
    /// The value itself.
    Nothing,
    /// A reference: `&str`.
    All,
    /// A reference, if there is a value: `Option<&str>`.
    Inner,
}

/// How the function takes the value that has the tools.
pub enum SelfArgument {
    None,
    /// `&self`
    Lent,
    /// `self: Arc<Self>`
    Shared,
}

/// Reads the arguments of a function, and removes the attributes that only this crate knows.
pub fn read(signature: &mut Signature) -> Result<(SelfArgument, Vec<Argument>)> {
    let mut own = SelfArgument::None;
    let mut arguments = Vec::new();
    for (place, input) in signature.inputs.iter_mut().enumerate() {
        match input {
            FnArg::Receiver(receiver) => own = receiver_kind(receiver)?,
            FnArg::Typed(input) => {
                let mut options = Options::default();
                for attribute in &input.attrs {
                    if attribute.path().is_ident("param") {
                        options = attribute.parse_args()?;
                    }
                }
                let description = documentation(&input.attrs);
                input.attrs.retain(|attribute| {
                    !attribute.path().is_ident("param") && !attribute.path().is_ident("doc")
                });
                let renamed = options.text("name")?.map(|name| name.value());
                let default = options.take("default").map(|(key, value)| {
                    value.unwrap_or_else(|| {
                        let span = key.span();
                        syn::parse_quote_spanned!(span=> ::core::default::Default::default())
                    })
                });
                options.finish("#[param]")?;
                let (taken, lends) = match (shared(&input.ty), optional(&input.ty)) {
                    (Some(lent), _) => (owned(lent), Lends::All),
                    (None, Some(lent)) => {
                        let owned = owned(lent);
                        (quote!(::core::option::Option<#owned>), Lends::Inner)
                    }
                    (None, None) => (input.ty.to_token_stream(), Lends::Nothing),
                };
                arguments.push(Argument {
                    name: renamed.or_else(|| name_of(&input.pat)),
                    description,
                    default,
                    taken,
                    lends,
                    span: input.ty.span(),
                    place,
                });
            }
        }
    }
    Ok((own, arguments))
}

fn receiver_kind(receiver: &Receiver) -> Result<SelfArgument> {
    if receiver.colon_token.is_some() {
        return Ok(SelfArgument::Shared);
    }
    match (&receiver.reference, &receiver.mutability) {
        (Some(_), None) => Ok(SelfArgument::Lent),
        _ => Err(Error::new_spanned(
            receiver,
            "calls run at the same time, so they share the value: take `&self`, and keep what changes in a `Mutex` or an atomic",
        )),
    }
}

/// The type that a shared reference refers to.
fn shared(of: &Type) -> Option<&Type> {
    match of {
        Type::Reference(reference) if reference.mutability.is_none() => Some(&reference.elem),
        _ => None,
    }
}

/// The type that the reference in an `Option` refers to.
fn optional(of: &Type) -> Option<&Type> {
    let Type::Path(path) = of else {
        return None;
    };
    let last = path
        .path
        .segments
        .last()
        .filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(list) = &last.arguments else {
        return None;
    };
    match list.args.first()? {
        GenericArgument::Type(inner) => shared(inner),
        _ => None,
    }
}

/// The type of the value that is lent.
fn owned(lent: &Type) -> TokenStream {
    quote_spanned!(lent.span()=> <#lent as ::std::borrow::ToOwned>::Owned)
}

fn name_of(pattern: &Pat) -> Option<String> {
    match pattern {
        Pat::Ident(pattern) => {
            let name = pattern.ident.unraw().to_string();
            let bare = name.trim_start_matches('_');
            (!bare.is_empty()).then(|| bare.to_owned())
        }
        Pat::TupleStruct(pattern) if pattern.elems.len() == 1 => name_of(&pattern.elems[0]),
        Pat::Reference(pattern) => name_of(&pattern.pat),
        Pat::Paren(pattern) => name_of(&pattern.pat),
        _ => None,
    }
}

impl Argument {
    /// The variable that takes this argument of each call.
    fn taker(&self) -> Ident {
        format_ident!("__taker{}", self.place, span = Span::mixed_site())
    }

    /// The variable that holds the argument of one call.
    fn value(&self) -> Ident {
        format_ident!("__value{}", self.place, span = Span::mixed_site())
    }

    /// Declares the argument.
    pub fn declare(&self, named: Named<'_>) -> Result<TokenStream> {
        let (taker, taken, text) = (self.taker(), &self.taken, &self.description);
        let name = self.name.as_deref().unwrap_or_default();
        let is_parameter = match named {
            Named::Any | Named::Only => !name.is_empty(),
            Named::These(names) => names.iter().any(|own| own == name),
        };
        let declared = match (&self.default, is_parameter, named) {
            (Some(default), true, _) => {
                // `"en"` for a `String`.
                let default = match default {
                    Expr::Lit(ExprLit {
                        lit: Lit::Str(text),
                        ..
                    }) => quote_spanned!(text.span()=> ::core::convert::Into::into(#text)),
                    other => other.to_token_stream(),
                };
                quote!(takes_or::<#taken>(#name, #text, #default))
            }
            (Some(default), false, _) => {
                let error = "only a parameter has a default";
                return Err(Error::new_spanned(default, error));
            }
            (None, true, Named::Any) => quote!(takes::<#taken, _>(#name, #text)),
            (None, true, Named::These(_)) => quote!(takes_parameter::<#taken>(#name, #text)),
            (None, true, Named::Only) => quote!(takes_inline::<#taken, _>(#name, #text)),
            (None, false, Named::Only) => {
                return Err(Error::new(self.span, "a parameter needs a name"));
            }
            (None, false, _) => quote!(takes_of_call::<#taken>()),
        };
        Ok(quote!(let #taker = __signature.#declared;))
    }

    /// Takes the argument of a call.
    pub fn take(&self) -> TokenStream {
        let (taker, value) = (self.taker(), self.value());
        quote!(let #value = #taker.take(__call)?;)
    }

    /// The argument as it is passed to the function.
    pub fn pass(&self) -> TokenStream {
        let value = self.value();
        match self.lends {
            Lends::Nothing => quote!(#value),
            Lends::All => quote_spanned!(self.span=> &#value),
            Lends::Inner => {
                quote_spanned!(self.span=> #value.as_ref().map(::core::borrow::Borrow::borrow))
            }
        }
    }
}
