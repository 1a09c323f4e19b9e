//! `#[derive(Identity)]` and `#[derive(Fingerprint)]`: read the type, judge it with every error collected,
//! write the implementations.

mod attributes;
mod bounds;
mod expand;
mod model;

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::errors::Errors;
use model::Model;

/// What is derived. An identity type can also be compared, by the same encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derived {
    Identity,
    Fingerprint,
}

pub(crate) fn derive(input: TokenStream, derived: Derived) -> TokenStream {
    let input: DeriveInput = match syn::parse2(input) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let model = Model::read(&input, &mut errors);
    if errors.is_empty() {
        return expand::implementations(&model, derived);
    }
    // With the traits in place, the places that use the type do not add errors of their own.
    let errors = errors.into_tokens();
    let placeholder = expand::placeholders(&model, derived);
    quote::quote!(#errors #placeholder)
}
