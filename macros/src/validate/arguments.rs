//! Rules on the parameters that follow the context.

use std::collections::HashSet;

use quote::format_ident;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Lifetime, Pat, Type, TypeReference, parse_quote_spanned};

use super::options::is_name;
use super::{Argument, Role};
use crate::args::{Args, Keying};
use crate::errors::Errors;
use crate::item::{Item, PARAMETER_ATTRIBUTES, Param, bare};
use crate::option::list;

pub(super) fn check(args: &Args, item: &Item, errors: &mut Errors) {
    let mut names = HashSet::new();
    for param in item.params.iter().skip(1) {
        is_named(param, errors);
        if !args.attached {
            is_owned(param, errors);
        }
        has_known_attributes(param, errors);
        has_one_role(param, errors);
        has_unique_name(args.keying, param, &mut names, errors);
    }
}

/// The argument of a parameter that passed every rule.
pub(super) fn read((index, param): (usize, &Param)) -> Option<Argument> {
    let is_json = !param.fingerprint.is_empty();
    let role = match (param.key.first(), param.skip.first(), param.secret.first()) {
        (Some(_), _, _) => {
            let number = |option: &Option<(_, u32)>| option.as_ref().map(|(_, number)| *number);
            Role::Key(number(&param.key_since).unwrap_or(1), number(&param.key_until))
        }
        (_, Some(_), _) => Role::Skip,
        (_, _, Some(_)) if is_json => Role::SecretJson,
        (_, _, Some(_)) => Role::Secret,
        _ if is_json => Role::Json,
        _ => Role::Plain,
    };
    let ident = param.ident()?;
    Some(Argument {
        ident: ident.clone(),
        local: format_ident!("__effect_{index}", span = ident.span()),
        pat: param.pat.clone(),
        ty: param.ty.clone(),
        named_ty: without_impl_trait(&param.ty),
        lent: matches!(bare(&param.ty), Type::Reference(reference) if reference.mutability.is_some()),
        name: name(param)?,
        role,
        lints: param.lints.clone(),
    })
}

fn without_impl_trait(ty: &Type) -> Type {
    struct Inferred;
    impl VisitMut for Inferred {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            match ty {
                Type::ImplTrait(found) => *ty = parse_quote_spanned!(found.span()=> _),
                ty => visit_mut::visit_type_mut(self, ty),
            }
        }
    }
    let mut ty = ty.clone();
    Inferred.visit_type_mut(&mut ty);
    ty
}

/// The pinned name, or the parameter's own.
fn name(param: &Param) -> Option<String> {
    match &param.key_name {
        Some(pinned) => Some(pinned.value()),
        None => Some(param.ident()?.unraw().to_string()),
    }
}

fn is_named(param: &Param, errors: &mut Errors) {
    if param.ident().is_some() {
        return;
    }
    let message = match &param.pat {
        Pat::Wild(_) => {
            "an argument needs a name, which identity and fingerprint use: write `_name` if the body does not use it"
        }
        _ => {
            "an argument needs a plain name, which identity and fingerprint use: take it apart in the body, with `let`"
        }
    };
    errors.at(&param.pat, message);
}

/// The body runs on a task of its own, which nothing borrowed can enter.
fn is_owned(param: &Param, errors: &mut Errors) {
    #[derive(Default)]
    struct Found<'ast> {
        reference: Option<&'ast TypeReference>,
        lifetime: Option<&'ast Lifetime>,
    }
    impl<'ast> Visit<'ast> for Found<'ast> {
        fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
            let is_static = reference.lifetime.as_ref().is_some_and(|lifetime| lifetime.ident == "static");
            if !is_static {
                self.reference.get_or_insert(reference);
            }
            // Its own lifetime is judged; what it points at is not.
            visit::visit_type(self, &reference.elem);
        }
        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            if lifetime.ident != "static" {
                self.lifetime.get_or_insert(lifetime);
            }
        }
        // `fn(&str)` and `dyn Fn(&str)` borrow nothing themselves.
        fn visit_type_fn_ptr(&mut self, _: &'ast syn::TypeFnPtr) {}
        fn visit_parenthesized_generic_arguments(&mut self, _: &'ast syn::ParenthesizedGenericArguments) {}
    }
    let mut found = Found::default();
    found.visit_type(&param.ty);
    if let Some(reference) = found.reference {
        let message = format!(
            "an argument cannot be borrowed, because the body runs on a task of its own and may outlive the caller: {}, \
             or add `attached` to run the body in the caller's task",
            owned_form(&reference.elem)
        );
        errors.at(reference, message);
    } else if let Some(lifetime) = found.lifetime {
        errors.at(
            lifetime,
            "an argument cannot borrow, because the body runs on a task of its own and may outlive the caller: \
             use an owned type, or `'static`, or add `attached` to run the body in the caller's task",
        );
    }
}

fn owned_form(borrowed: &Type) -> &'static str {
    let name = crate::item::last_segment(borrowed).map(|segment| segment.ident.to_string());
    match (borrowed, name.as_deref()) {
        (_, Some("str")) => "take a `String`",
        (Type::Slice(_), _) => "take a `Vec<_>`",
        (Type::TraitObject(_), _) => "take an `Arc<dyn …>`",
        _ => "take it by value, or in an `Arc`",
    }
}

fn has_known_attributes(param: &Param, errors: &mut Errors) {
    for attr in &param.others {
        let message = if attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr") {
            "an effect's argument cannot be conditional: its name is part of the fingerprint; put `#[cfg]` on the function".into()
        } else {
            format!("unknown attribute of an effect's argument; it takes {}", list(PARAMETER_ATTRIBUTES))
        };
        errors.at(attr, message);
    }
}

fn has_one_role(param: &Param, errors: &mut Errors) {
    let given = [
        (&param.key, "#[key]"),
        (&param.skip, "#[skip]"),
        (&param.secret, "#[secret]"),
        (&param.fingerprint, "#[fingerprint]"),
    ];
    for (given, name) in given {
        if let Some(second) = given.get(1) {
            errors.at(second, format!("`{name}` is given twice; write it once"));
        }
    }
    let [key, skip, secret, fingerprint] = given.map(|(given, _)| given.first());
    let mut both = |first: Option<&Attribute>, second: Option<&Attribute>, message: &str| {
        if let (Some(_), Some(second)) = (first, second) {
            errors.at(second, message);
        }
    };
    both(
        key,
        skip,
        "an argument cannot be both `#[key]` and `#[skip]`: a key says which effect it is, a skipped argument says nothing of it",
    );
    both(
        key,
        secret,
        "a `#[key]` cannot be `#[secret]`: the identity is stored and shown, and a value that can be guessed is found by \
         guessing; take a key that may be known, and mark the secret argument alone",
    );
    both(
        skip,
        secret,
        "an argument cannot be both `#[skip]` and `#[secret]`: a skipped argument is not in the fingerprint, and nothing of it \
         is stored; remove one",
    );
    if skip.is_none() {
        both(
            key,
            fingerprint,
            "a `#[key]` is in the fingerprint already, in its own encoding: remove `#[fingerprint(json)]`",
        );
    }
    if key.is_none() {
        both(
            skip,
            fingerprint,
            "an argument cannot be both `#[skip]` and `#[fingerprint(json)]`: a skipped argument is not in the fingerprint; remove one",
        );
    }
}

/// The names under which arguments enter the identity and the fingerprint differ.
fn has_unique_name(keying: Option<Keying>, param: &Param, names: &mut HashSet<String>, errors: &mut Errors) {
    let Some(name) = name(param) else { return };
    let is_key = !param.key.is_empty() && keying != Some(Keying::ActivityRecipe);
    if is_key && !is_name(&name, 64) {
        const GRAMMAR: &str = "1 to 64 characters of `A-Z a-z 0-9 . _ -`";
        match &param.key_name {
            Some(pinned) => errors.at(pinned, format!("a key's name is {GRAMMAR}")),
            None => errors.at(
                &param.pat,
                format!("a key's name is {GRAMMAR}: pin one with `#[key(name = \"order_id\")]`"),
            ),
        }
    }
    // The names of parameters differ by Rust's own rule, so one of the two is pinned.
    if param.skip.is_empty() && !names.insert(name.clone()) {
        let message = format!(
            "the name `{name}` is taken by another argument: pin another with `#[key(name = \"…\")]`"
        );
        match &param.key_name {
            Some(pinned) => errors.at(pinned, message),
            None => errors.at(&param.pat, message),
        }
    }
}
