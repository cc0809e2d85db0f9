//! The generated code of one handler: its definition, and a closure that calls the function.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, LitStr, Result, ReturnType, Signature};

use crate::attribute::{self, Options, documentation};
use crate::completion::Target;
use crate::parameter::{self, Argument, Named, SelfArgument};
use crate::template;

/// The kind of handler that a function becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tool,
    Resource,
    Prompt,
    Completion,
}

impl Kind {
    /// The kind of handler that an attribute makes; `None` for all other attributes.
    pub fn of(attribute: &Attribute) -> Option<Self> {
        let name = &attribute.path().segments.last()?.ident;
        let all = [Self::Tool, Self::Resource, Self::Prompt, Self::Completion];
        all.into_iter().find(|kind| name == kind.name())
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Completion => "completion",
        }
    }
}

/// A function that handles calls.
pub struct Handler {
    pub kind: Kind,
    /// The function's name.
    pub function: Ident,
    /// The name under which it is registered; completions have none.
    pub name: LitStr,
    /// For completions.
    pub target: Option<Target>,
    documentation: String,
    /// The `#[cfg]`s of the function.
    conditions: Vec<Attribute>,
    is_async: bool,
    own: SelfArgument,
    arguments: Vec<Argument>,
    /// The URI of a resource.
    uri: Option<LitStr>,
    options: Options,
    /// Where the function declares what it returns.
    output: Span,
}

impl Handler {
    /// Reads a function, and removes from its arguments the attributes that only this crate knows.
    pub fn read(
        kind: Kind,
        options: TokenStream,
        attributes: &[Attribute],
        signature: &mut Signature,
    ) -> Result<Self> {
        if let Some(parameter) = signature.generics.params.first() {
            let error = "a client cannot choose types: a handler has no type parameters or lifetimes of its own";
            return Err(Error::new_spanned(parameter, error));
        }
        let (mut uri, mut target) = (None, None);
        let mut options: Options = match kind {
            Kind::Resource => {
                let expected = "the resource needs its URI: `#[resource(\"memo://{id}\")]`";
                let (text, options) = attribute::leading(options, expected)?;
                uri = Some(text);
                options
            }
            Kind::Completion => {
                let expected = "the completion needs a prompt or a URI template, and its argument: `#[completion(review, language)]`";
                let (text, options) = attribute::leading(options, expected)?;
                target = Some(text);
                options
            }
            Kind::Tool | Kind::Prompt => syn::parse2(options)?,
        };
        let (own, arguments) = parameter::read(signature)?;
        let function = signature.ident.clone();
        let bare = function.unraw().to_string();
        let name = match kind {
            Kind::Completion => None,
            _ => options.text("name")?,
        };
        Ok(Self {
            kind,
            name: name.unwrap_or_else(|| LitStr::new(&bare, function.span())),
            function,
            target,
            documentation: documentation(attributes),
            conditions: {
                let conditions = attributes.iter().filter(|one| one.path().is_ident("cfg"));
                conditions.cloned().collect()
            },
            is_async: signature.asyncness.is_some(),
            own,
            arguments,
            uri,
            options,
            output: match &signature.output {
                ReturnType::Default => signature.ident.span(),
                ReturnType::Type(_, output) => output.span(),
            },
        })
    }

    /// The statement that adds the handler to the server `__server`. `path` names the function.
    pub fn expand(mut self, path: &TokenStream) -> Result<TokenStream> {
        let options = std::mem::take(&mut self.options);
        match self.kind {
            Kind::Tool => self.tool(options, path),
            Kind::Resource => self.resource(options, path),
            Kind::Prompt => self.prompt(options, path),
            Kind::Completion => self.completion(options, path),
        }
    }

    fn tool(&self, mut options: Options, path: &TokenStream) -> Result<TokenStream> {
        let is_inline = options.flag("inline")?.unwrap_or_default();
        let is_blocking = options.flag("blocking")?.unwrap_or_default();
        let mut hints = Vec::new();
        for (name, hint) in [
            ("read_only", "readOnlyHint"),
            ("destructive", "destructiveHint"),
            ("idempotent", "idempotentHint"),
            ("open_world", "openWorldHint"),
        ] {
            let given = options.flag(name)?;
            hints.extend(given.map(|given| format!("\"{hint}\":{given}")));
        }
        let name = &self.name;
        let mut definition =
            self.described(quote!(::mcpbolt::server::Tool::new(#name)), &mut options)?;
        if !hints.is_empty() {
            let hints = format!("{{{}}}", hints.join(","));
            definition.extend(quote!(.annotations(#hints)));
        }
        definition.extend(set(
            &["icons", "meta", "output_schema", "task_support", "action"],
            &mut options,
        )?);
        options.finish("#[tool]")?;
        let error = match (is_inline, is_blocking) {
            (false, false) => return self.adding("declared_tool", &definition, Named::Any, path),
            (true, true) => {
                "an inline tool takes microseconds, so it cannot block: remove `inline`, or `blocking`"
            }
            (true, false) if self.is_async => {
                "an inline tool answers before the next message is read, so it cannot wait: remove `async`, or `inline`"
            }
            (true, false) => {
                return self.adding("declared_inline_tool", &definition, Named::Only, path);
            }
            (false, true) if self.is_async => {
                "an `async` function does not block its thread: remove `async`, or `blocking`"
            }
            (false, true) => {
                return self.adding("declared_blocking_tool", &definition, Named::Any, path);
            }
        };
        Err(Error::new_spanned(&self.function, error))
    }

    fn resource(&self, mut options: Options, path: &TokenStream) -> Result<TokenStream> {
        let uri = self.uri.as_ref().map(LitStr::value).unwrap_or_default();
        let variables = template::variables(&uri);
        if let Some(unused) = variables.iter().find(|name| !self.takes(name)) {
            let error =
                format!("no argument takes the variable `{unused}`: add `{unused}: String`");
            return Err(Error::new_spanned(&self.uri, error));
        }
        let (uri, name) = (&self.uri, &self.name);
        let new = quote!(::mcpbolt::server::Resource::new(#uri, #name));
        let mut definition = self.described(new, &mut options)?;
        let more = ["mime_type", "size", "annotations", "icons", "meta"];
        definition.extend(set(&more, &mut options)?);
        options.finish("#[resource]")?;
        self.adding(
            "declared_resource",
            &definition,
            Named::These(&variables),
            path,
        )
    }

    fn prompt(&self, mut options: Options, path: &TokenStream) -> Result<TokenStream> {
        let name = &self.name;
        let new = quote!(::mcpbolt::server::Prompt::new(#name));
        let mut definition = self.described(new, &mut options)?;
        definition.extend(set(&["icons", "meta"], &mut options)?);
        options.finish("#[prompt]")?;
        self.adding("declared_prompt", &definition, Named::Any, path)
    }

    fn completion(&self, options: Options, path: &TokenStream) -> Result<TokenStream> {
        options.finish("#[completion]")?;
        let Some(target) = &self.target else {
            return Ok(TokenStream::new());
        };
        let (of, argument) = (&target.of, target.argument_name());
        let sees_value = self.takes("value");
        let target = quote!(#of, #argument, #sees_value);
        self.adding("declared_completion", &target, Named::Any, path)
    }

    /// Returns whether an argument has this name.
    pub fn takes(&self, name: &str) -> bool {
        let mut arguments = self.arguments.iter();
        arguments.any(|argument| argument.name.as_deref() == Some(name))
    }

    /// A definition with its title and its description, which is the function's documentation if no other is
    /// given.
    fn described(&self, mut definition: TokenStream, options: &mut Options) -> Result<TokenStream> {
        let described = options.value("description")?;
        let described = described.map(ToTokens::into_token_stream).or_else(|| {
            let text = &self.documentation;
            (!text.is_empty()).then(|| quote!(#text))
        });
        definition.extend(described.map(|text| quote!(.description(#text))));
        definition.extend(set(&["title"], options)?);
        Ok(definition)
    }

    /// The statement that calls the builder's method `add` with a definition, the signature, and a closure that
    /// runs the function.
    fn adding(
        &self,
        add: &str,
        definition: &TokenStream,
        named: Named<'_>,
        path: &TokenStream,
    ) -> Result<TokenStream> {
        let arguments = self.arguments.iter();
        let declared = arguments.clone().map(|argument| argument.declare(named));
        let declared = declared.collect::<Result<Vec<_>>>()?;
        let taken = arguments.clone().map(Argument::take);
        let passed = arguments.map(Argument::pass);
        let function = &self.function;
        let has_owner = !matches!(self.own, SelfArgument::None);
        let owner = has_owner.then(|| {
            quote! {
                let __owner = ::core::clone::Clone::clone(&__owner);
                __signature.belongs_to(&__owner);
            }
        });
        let this = has_owner.then(|| quote!(let __this = __owner.of(__call)?;));
        let own = match self.own {
            SelfArgument::None => None,
            SelfArgument::Lent => Some(quote!(&*__this,)),
            SelfArgument::Shared => Some(quote!(__this,)),
        };
        let awaited = self.is_async.then(|| quote!(.await));
        let call = quote!(#path #function(#own #(#passed),*) #awaited);
        let run = match named {
            Named::Only => call,
            Named::Any | Named::These(_) => quote!(async move { #call }),
        };
        // A result of a wrong type is reported where the function declares it.
        let add = Ident::new(add, self.output);
        let conditions = &self.conditions;
        Ok(quote! {
            #(#conditions)*
            let __server = {
                let mut __signature = ::mcpbolt::server::extract::Signature::new();
                #(#declared)*
                #owner
                __server.#add(
                    #definition,
                    __signature,
                    move |__call: &::mcpbolt::server::extract::Received<'_>| {
                        #(#taken)*
                        #this
                        ::core::result::Result::Ok(#run)
                    },
                )
            };
        })
    }
}

/// Calls the definition's method of each option that is given.
fn set(names: &[&'static str], options: &mut Options) -> Result<TokenStream> {
    let mut calls = TokenStream::new();
    for name in names {
        if let Some(value) = options.value(name)? {
            let method = Ident::new(name, value.span());
            calls.extend(quote!(.#method(#value)));
        }
    }
    Ok(calls)
}
