//! `#[effect(…)]`: read, judge, and write either the effect or its stand-in.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemFn, TraitItemFn};

use crate::args::Args;
use crate::errors::Errors;
use crate::item::Item;
use crate::{expand, fallback, validate};

pub(crate) fn effect(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse2::<ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(error) => return not_a_function(item, error),
    };
    let mut errors = Errors::default();
    let args = Args::read(attribute, &mut errors);
    let item = Item::read(function, &mut errors);
    match validate::check(args, &item, &mut errors) {
        Some(effect) => expand::expand(&effect),
        None => {
            let errors = errors.into_tokens();
            let stand_in = fallback::fallback(&item);
            quote!(#errors #stand_in)
        }
    }
}

/// Something else than a function, or one that is still being typed: then Rust's own error says more.
fn not_a_function(item: TokenStream, error: syn::Error) -> TokenStream {
    const RULE: &str = "`#[effect]` goes on an `async fn` with a body, free or in an inherent `impl`";
    if let Ok(declared) = syn::parse2::<TraitItemFn>(item.clone()) {
        let message = format!(
            "{RULE}: this one is a trait's; make the effect a free function, or an inherent method, that the trait's method calls"
        );
        let error = syn::Error::new_spanned(&declared.sig, message).into_compile_error();
        return quote!(#error #declared);
    }
    if syn::parse2::<syn::Item>(item.clone()).is_ok() {
        let error =
            syn::Error::new_spanned(item.clone().into_iter().next(), format!("{RULE}, not on this item"));
        let error = error.into_compile_error();
        return quote!(#error #item);
    }
    let error = error.into_compile_error();
    quote!(#error #item)
}
