//! What stands in for an effect that was refused: a function of the same name that callers can still compile against.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{FnArg, Ident, ItemFn, ReturnType, Signature, parse_quote};

use crate::item::{Item, Param, is_boxed_future};

/// The wrapper's shape where the mistake leaves one, else the untouched function. Either way the user's body is still checked,
/// and the mistake gives one error, not one at each caller as well.
pub(crate) fn fallback(item: &Item) -> TokenStream {
    let mut function = item.function.clone();
    let sig = &mut function.sig;
    if is_boxed_future(&sig.output) {
        return function.into_token_stream();
    }
    sig.constness = None;
    sig.variadic = None;
    // Without `async`, each `.await` in the body would be an error of its own.
    sig.asyncness.get_or_insert_default();
    match (wrapper_inputs(item), &function.sig.output) {
        (Some(inputs), ReturnType::Type(..)) => wrapper(function, &inputs, item.is_of_a_type()),
        _ => function.into_token_stream(),
    }
}

fn wrapper(function: ItemFn, inputs: &[FnArg], is_of_a_type: bool) -> TokenStream {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let ReturnType::Type(_, output) = &sig.output else { return TokenStream::new() };
    let mut outer = Signature { asyncness: None, ..sig.clone() };
    outer.generics.params.push(parse_quote!(__EffectScope: ?::core::marker::Sized));
    outer.inputs = inputs.iter().cloned().collect();
    outer.output = parse_quote!(-> impl ::core::future::Future<Output = #output> + ::core::marker::Send);
    let name = if is_of_a_type {
        format_ident!("__effect_{}", sig.ident.unraw())
    } else {
        format_ident!("__effect_body")
    };
    let inner = Signature { ident: Ident::new(&name.to_string(), sig.ident.span()), ..sig.clone() };
    let inner = quote!(#[allow(dead_code)] #inner #block);
    let (sibling, nested) = if is_of_a_type { (Some(inner), None) } else { (None, Some(inner)) };
    quote! {
        #(#attrs)*
        #vis #outer {
            #nested
            ::core::future::pending::<#output>()
        }
        #sibling
    }
}

/// The parameters that callers see, where one of them is a context; patterns stay with the body.
fn wrapper_inputs(item: &Item) -> Option<Vec<FnArg>> {
    let context = item.params.iter().position(Param::is_context_like)?;
    let input = |(index, param): (usize, &Param)| -> FnArg {
        let ty = &param.ty;
        if index == context { parse_quote!(_: &__EffectScope) } else { parse_quote!(_: #ty) }
    };
    let receiver = item.function.sig.receiver().map(|receiver| FnArg::Receiver(receiver.clone()));
    Some(receiver.into_iter().chain(item.params.iter().enumerate().map(input)).collect())
}
