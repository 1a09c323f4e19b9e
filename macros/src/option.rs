//! The one reader of `name`, `name = value` and `name(…)` lists, for every attribute of the crate.

use proc_macro2::{Ident, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Meta, Token};

use crate::errors::Errors;

/// The options that one attribute takes.
pub(crate) struct Grammar {
    /// How messages name the attribute: `` `#[effect]` ``.
    pub(crate) owner: &'static str,
    pub(crate) names: &'static [&'static str],
}

/// Reads the value of the option that it is given the name of.
pub(crate) trait ReadValue: FnMut(&Ident, ParseStream<'_>, &mut Errors) -> syn::Result<()> {}
impl<F: FnMut(&Ident, ParseStream<'_>, &mut Errors) -> syn::Result<()>> ReadValue for F {}

impl Grammar {
    /// Reads a whole list. A bad option is reported and skipped, so that one mistake hides no other.
    pub(crate) fn read(&self, input: ParseStream<'_>, errors: &mut Errors, mut value: impl ReadValue) {
        let mut seen = Vec::new();
        while !input.is_empty() {
            if let Err(error) = self.read_one(input, &mut seen, errors, &mut value) {
                errors.push(error);
                skip_to_comma(input);
            }
            if input.parse::<Option<Token![,]>>().is_err() {
                break;
            }
        }
    }

    /// Reads the list of an attribute that must have one: `#[key(…)]`.
    pub(crate) fn read_attribute(&self, attr: &Attribute, errors: &mut Errors, value: impl ReadValue) {
        let read = |input: ParseStream<'_>| {
            self.read(input, errors, value);
            Ok(())
        };
        let parsed = match &attr.meta {
            Meta::List(_) => attr.parse_args_with(read),
            meta => Err(syn::Error::new_spanned(meta, format!("{} takes {}", self.owner, list(self.names)))),
        };
        if let Err(error) = parsed {
            errors.push(error);
        }
    }

    fn read_one(
        &self,
        input: ParseStream<'_>,
        seen: &mut Vec<Ident>,
        errors: &mut Errors,
        value: &mut impl ReadValue,
    ) -> syn::Result<()> {
        let name = input.call(Ident::parse_any).map_err(|error| {
            syn::Error::new(error.span(), format!("expected an option; {}", self.choices()))
        })?;
        if !self.names.iter().any(|known| name == known) {
            let message = format!("unknown option `{name}`; {}", self.choices());
            return Err(syn::Error::new(name.span(), message));
        }
        if seen.contains(&name) {
            let message = format!("`{name}` is given twice; write each option of {} once", self.owner);
            return Err(syn::Error::new(name.span(), message));
        }
        seen.push(name.clone());
        value(&name, input, errors)?;
        if input.is_empty() || input.peek(Token![,]) {
            return Ok(());
        }
        Err(input.error(format!("expected `,` after the option `{name}`")))
    }

    fn choices(&self) -> String {
        match self.names {
            [one] => format!("the only option of {} is `{one}`", self.owner),
            names => format!("the options of {} are {}", self.owner, list(names)),
        }
    }
}

/// Reads `= value`.
pub(crate) fn assigned<T: Parse>(name: &Ident, form: &str, input: ParseStream<'_>) -> syn::Result<T> {
    let wrong = |error: syn::Error| syn::Error::new(error.span(), format!("write `{name} = {form}`"));
    if !input.peek(Token![=]) {
        return Err(syn::Error::new(name.span(), format!("`{name}` needs a value: write `{name} = {form}`")));
    }
    input.parse::<Token![=]>()?;
    input.parse().map_err(wrong)
}

/// Reads an option that is its own value.
pub(crate) fn flag(name: &Ident, input: ParseStream<'_>) -> syn::Result<bool> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(true);
    }
    Err(input.error(format!("`{name}` takes no value: write `{name}`, or leave it out")))
}

/// Reads `= word`, one of a few words.
pub(crate) fn chosen<T: Copy>(
    name: &Ident,
    choices: &[(&str, T)],
    input: ParseStream<'_>,
) -> syn::Result<(Ident, T)> {
    let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
    let form = words.join(" | ");
    let word: Ident = assigned(name, &form, input)?;
    match choices.iter().find(|(known, _)| word == known) {
        Some((_, choice)) => Ok((word, *choice)),
        None => {
            let message = format!("unknown value `{word}` of `{name}`; the values are {}", list(&words));
            Err(syn::Error::new(word.span(), message))
        }
    }
}

/// `` `a`, `b` and `c` ``.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        // Cannot fail: the input is not empty, and any token tree will do.
        let _skipped: syn::Result<TokenTree> = input.parse();
    }
}
