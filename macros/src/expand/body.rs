//! The user's function as the body, inside the wrapper or beside it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{AttrStyle, Attribute, Meta, Signature};

use super::spans::{body_context, own};
use super::turbofish;
use crate::validate::{Argument, Effect};

/// The user's function. Lints that would repeat what is said of the wrapper, or that an effect's shape forces, are off.
pub(super) fn body(effect: &Effect) -> TokenStream {
    let Effect { context, context_ty, block, receiver, .. } = effect;
    let Signature { asyncness, fn_token, generics, output, .. } = &effect.sig;
    let name = name(effect);
    let parameters =
        effect.arguments.iter().map(|Argument { pat, ty, lints, .. }| quote!(#(#lints)* #pat: #ty));
    let receiver = receiver.as_ref().map(|receiver| quote!(#receiver,));
    let where_clause = &generics.where_clause;
    // The sibling of a wrapper stands under the same conditions and lint levels; an inner function does anyway.
    let inherited = effect.attrs.iter().filter(|attr| effect.is_of_a_type && is_of_the_body(attr));
    let dead_code = effect.is_of_a_type.then(|| quote!(#[doc(hidden)] #[allow(dead_code)]));
    quote! {
        #dead_code
        #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value, clippy::unused_async)]
        #(#inherited)*
        #asyncness #fn_token #name #generics(#receiver #context: #context_ty, #(#parameters),*) #output #where_clause #block
    }
}

/// The sibling's name says what is wrong where there can be none: a trait has no such method.
fn name(effect: &Effect) -> Ident {
    let name = &effect.sig.ident;
    if effect.is_of_a_type {
        format_ident!("__effect_{}_must_be_an_inherent_method", name.unraw(), span = own(name))
    } else {
        Ident::new("__effect_body", Span::call_site())
    }
}

/// The body's function, and its first argument where it has a `self`.
pub(super) fn called(effect: &Effect) -> TokenStream {
    let name = name(effect);
    let parameters = turbofish(&effect.sig.generics);
    let of_a_type = effect.is_of_a_type.then(|| quote!(Self::));
    quote!(#of_a_type #name #parameters)
}

/// Runs the body; another `Result` than the crate's is reported at the return type.
pub(super) fn run(effect: &Effect, private: &TokenStream) -> TokenStream {
    let Effect { context_ty, value_ty, error_ty, return_ty, .. } = effect;
    let context = body_context(context_ty);
    let context = quote_spanned!(context_ty.span()=> &#context);
    let values = effect.arguments.iter().map(|argument| &argument.local);
    let (body, receiver) = (called(effect), super::call::receiver_argument(effect));
    let returned = quote!(#body(#receiver #context, #(#values),*).await);
    quote!(#private::returned::<#value_ty, #error_ty, #return_ty>(#returned))
}

/// What stands under the attribute goes to the wrapper. What the sibling expects is only met there: here it is allowed.
pub(super) fn attributes_of_wrapper(effect: &Effect) -> Vec<Attribute> {
    let mut attrs = effect.attrs.clone();
    if effect.is_of_a_type {
        for attr in &mut attrs {
            if let (Meta::List(list), AttrStyle::Outer) = (&mut attr.meta, attr.style)
                && list.path.is_ident("expect")
            {
                list.path = Ident::new("allow", list.path.span()).into();
            }
        }
    }
    attrs
}

fn is_of_the_body(attr: &Attribute) -> bool {
    ["cfg", "cfg_attr", "allow", "expect", "warn", "deny", "forbid"]
        .iter()
        .any(|name| attr.path().is_ident(name))
}
