//! The attributes that the derives know, and the refusal of every other use of them.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Ident, LitStr, Meta, Path};

use crate::errors::Errors;

const KEY_USE: &str = "every field of a derived type takes part, so there is nothing to mark here; \
                       `#[key(name = \"…\")]` pins the name that a field or a variant is encoded by";

const NAME_IS_TEXT: &str = "the name is a text: `#[key(name = \"…\")]`";

const NAME_RULE: &str = "an encoded name is 1 to 64 of `A-Z a-z 0-9 _ . -`";

/// The name under which a field or a variant is encoded, with the token that says so.
pub(super) struct Name {
    pub(super) text: String,
    pub(super) token: proc_macro2::TokenStream,
}

/// The crate's path from `#[effectual(crate = …)]`, or `::effectual`.
pub(super) fn crate_path(attrs: &[Attribute], errors: &mut Errors) -> Path {
    let mut found = None;
    for attr in attrs {
        if attr.path().is_ident("effectual") {
            once(attr, errors, |meta| crate_option(&meta, &mut found));
        } else {
            refuse(attr, "a type", errors);
        }
    }
    found.unwrap_or_else(|| syn::parse_quote!(::effectual))
}

fn crate_option(meta: &ParseNestedMeta<'_>, found: &mut Option<Path>) -> syn::Result<()> {
    if !meta.path.is_ident("crate") {
        return Err(unknown(meta, "`crate = path`"));
    }
    let path = meta.value()?.call(Path::parse_mod_style)?;
    if found.replace(path).is_some() { Err(meta.error("`crate` is given twice")) } else { Ok(()) }
}

/// The pinned name of a field or variant, or its own name, judged by the rule of encoded names.
pub(super) fn encoded_name(attrs: &[Attribute], ident: &Ident, errors: &mut Errors) -> Name {
    match pinned_name(attrs, "a field or a variant", errors) {
        Some(literal) => {
            let text = literal.value();
            if !is_name(&text) {
                errors.at(&literal, NAME_RULE);
            }
            Name { text, token: quote::quote!(#literal) }
        }
        None => {
            let text = ident.to_string();
            let text = text.strip_prefix("r#").unwrap_or(&text).to_owned();
            if !is_name(&text) {
                errors.at(ident, format!("{NAME_RULE}; give this one another by `#[key(name = \"…\")]`"));
            }
            Name { text, token: quote::quote!(#ident) }
        }
    }
}

/// Refuses a pinned name where there is no name to pin.
pub(super) fn no_name(attrs: &[Attribute], errors: &mut Errors) {
    if let Some(literal) = pinned_name(attrs, "a field", errors) {
        errors
            .at(literal, "a field without a name is encoded by its position; to pin a name, name the field");
    }
}

fn pinned_name(attrs: &[Attribute], place: &str, errors: &mut Errors) -> Option<LitStr> {
    let mut found = None;
    for attr in attrs {
        if attr.path().is_ident("key") {
            once(attr, errors, |meta| name_option(&meta, &mut found));
        } else {
            refuse(attr, place, errors);
        }
    }
    found
}

fn name_option(meta: &ParseNestedMeta<'_>, found: &mut Option<LitStr>) -> syn::Result<()> {
    if !meta.path.is_ident("name") {
        return Err(unknown(meta, "`name = \"…\"`"));
    }
    let value = meta.value()?;
    let literal = value.parse::<LitStr>().map_err(|error| syn::Error::new(error.span(), NAME_IS_TEXT))?;
    if found.replace(literal).is_some() { Err(meta.error("`name` is given twice")) } else { Ok(()) }
}

/// Reads the options of one attribute; one without options is an error, not nothing.
fn once(attr: &Attribute, errors: &mut Errors, option: impl FnMut(ParseNestedMeta<'_>) -> syn::Result<()>) {
    let empty = match &attr.meta {
        Meta::List(list) => list.tokens.is_empty(),
        _ => true,
    };
    if !empty {
        if let Err(error) = attr.parse_nested_meta(option) {
            errors.push(error);
        }
    } else if attr.path().is_ident("key") {
        errors.at(&attr.meta, KEY_USE);
    } else {
        errors.at(&attr.meta, "the option here is `#[effectual(crate = path)]`");
    }
}

fn unknown(meta: &ParseNestedMeta<'_>, valid: &str) -> syn::Error {
    let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
    meta.error(format!("unknown option `{name}`; the option here is {valid}"))
}

/// The attributes that belong to an effect's arguments, or to another place of a type. They are declared as
/// the derives' own so that they end in an error here and are not silently somebody else's.
fn refuse(attr: &Attribute, place: &str, errors: &mut Errors) {
    let Some(name) = attr.path().get_ident().map(ToString::to_string) else { return };
    let message = match name.as_str() {
        "key" => format!("`#[key]` does not go on {place}; it pins the name of a field or a variant"),
        "effectual" => format!("`#[effectual(…)]` does not go on {place}; it goes on the type"),
        "skip" => "nothing of a derived type can be left out: two values would be taken for one; \
                   `#[skip]` goes on a whole argument of the effect"
            .to_owned(),
        "secret" => "`#[secret]` goes on a whole argument of the effect, not inside its type".to_owned(),
        "fingerprint" => {
            "`#[fingerprint(json)]` goes on a whole argument of the effect, not inside its type".to_owned()
        }
        _ => return,
    };
    errors.at(&attr.meta, message);
}

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}
