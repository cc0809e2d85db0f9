//! The parentheses of an attribute: `"memo://{id}", title = "Memo", read_only`.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Error, Expr, ExprLit, Lit, LitStr, Result, Token};

/// The options of an attribute. Those that are asked for are those that it knows.
#[derive(Default)]
pub struct Options {
    given: Vec<(Ident, Option<Expr>)>,
    known: Vec<&'static str>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            let name = input.call(Ident::parse_any)?;
            if options.given.iter().any(|(own, _)| *own == name) {
                return Err(Error::new(name.span(), format!("`{name}` is given twice")));
            }
            let value = input.peek(Token![=]).then(|| {
                input.parse::<Token![=]>()?;
                input.parse::<Expr>()
            });
            options.given.push((name, value.transpose()?));
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

impl Options {
    /// Takes an option with a value.
    pub fn value(&mut self, name: &'static str) -> Result<Option<Expr>> {
        match self.take(name) {
            None => Ok(None),
            Some((_, Some(value))) => Ok(Some(value)),
            Some((key, None)) => {
                let text = format!("`{name}` needs a value: `{name} = …`");
                Err(Error::new(key.span(), text))
            }
        }
    }

    /// Takes an option whose value is a string literal.
    pub fn text(&mut self, name: &'static str) -> Result<Option<LitStr>> {
        let text = |value| match value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Ok(text),
            other => Err(Error::new_spanned(
                other,
                format!("`{name}` needs a string literal"),
            )),
        };
        self.value(name)?.map(text).transpose()
    }

    /// Takes an option that is given alone, or with `true` or `false`.
    pub fn flag(&mut self, name: &'static str) -> Result<Option<bool>> {
        match self.take(name) {
            None => Ok(None),
            Some((_, None)) => Ok(Some(true)),
            Some((
                _,
                Some(Expr::Lit(ExprLit {
                    lit: Lit::Bool(value),
                    ..
                })),
            )) => Ok(Some(value.value)),
            Some((key, Some(_))) => {
                let text = format!("`{name}` is `true`, if it stands alone, or `{name} = false`");
                Err(Error::new(key.span(), text))
            }
        }
    }

    /// Takes an option, with its value if there is one.
    pub fn take(&mut self, name: &'static str) -> Option<(Ident, Option<Expr>)> {
        self.known.push(name);
        let at = self.given.iter().position(|(own, _)| own == name)?;
        Some(self.given.remove(at))
    }

    /// Checks that every option was one that the attribute knows.
    pub fn finish(self, attribute: &str) -> Result<()> {
        let Some((name, _)) = self.given.first() else {
            return Ok(());
        };
        let known = self.known.iter().map(|name| format!("`{name}`"));
        let known = known.collect::<Vec<_>>().join(", ");
        let text = match known.is_empty() {
            true => format!("`{attribute}` has no further options"),
            false => format!("`{attribute}` has no option `{name}`; its options are {known}"),
        };
        Err(Error::new(name.span(), text))
    }
}

/// Splits off what stands before the options: `"memo://{id}"` or `review, language`.
pub fn leading<T: Parse>(tokens: proc_macro2::TokenStream, expected: &str) -> Result<(T, Options)> {
    let parser = |input: ParseStream<'_>| {
        if input.is_empty() {
            return Err(Error::new(Span::call_site(), expected));
        }
        let first = input
            .parse()
            .map_err(|error: Error| Error::new(error.span(), expected))?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        Ok((first, input.parse()?))
    };
    parser.parse2(tokens)
}

/// The text of doc comments, without the indentation that they share.
pub fn documentation(attributes: &[syn::Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) if pair.path.is_ident("doc") => Some(text.value()),
            _ => None,
        }
    });
    let lines = lines.collect::<Vec<_>>().join("\n");
    let lines = lines
        .lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end());
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}
