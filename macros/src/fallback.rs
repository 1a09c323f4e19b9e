//! What stands in for an effect that was refused: a function of the same name that callers can still compile against.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{FnArg, Ident, ItemFn, ReturnType, Signature, parse_quote};

use crate::item::{Item, Param, is_boxed_future};

/// The wrapper's shape where the mistake leaves one, else the untouched function. Either way the user's body is still checked,
/// and the mistake gives one error, not one at each caller as well.
pub(crate) fn fallback(item: &Item) -> TokenStream {
    let mut function = item.function.clone();
    let sig = &mut function.sig;
    if is_boxed_future(&sig.output) || sig.receiver().is_some() || item.self_type().is_some() {
        return function.into_token_stream();
    }
    sig.constness = None;
    sig.variadic = None;
    // Without `async`, each `.await` in the body would be an error of its own.
    sig.asyncness.get_or_insert_default();
    match (wrapper_inputs(item), &function.sig.output) {
        (Some(inputs), ReturnType::Type(..)) => wrapper(function, &inputs),
        _ => function.into_token_stream(),
    }
}

fn wrapper(function: ItemFn, inputs: &[FnArg]) -> TokenStream {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let ReturnType::Type(_, output) = &sig.output else { return TokenStream::new() };
    let mut outer = Signature { asyncness: None, ..sig.clone() };
    outer.generics.params.push(parse_quote!(__EffectScope: ?::core::marker::Sized));
    outer.inputs = inputs.iter().cloned().collect();
    outer.output = parse_quote!(-> impl ::core::future::Future<Output = #output> + ::core::marker::Send);
    let inner = Signature { ident: Ident::new("__effect_body", sig.ident.span()), ..sig.clone() };
    quote! {
        #(#attrs)*
        #vis #outer {
            #[allow(dead_code)]
            #inner #block
            ::core::future::pending::<#output>()
        }
    }
}

/// The parameters that callers see, where one of them is a context; patterns stay with the body.
fn wrapper_inputs(item: &Item) -> Option<Vec<FnArg>> {
    let context = item.params.iter().position(Param::is_context_like)?;
    let input = |(index, param): (usize, &Param)| -> FnArg {
        let ty = &param.ty;
        if index == context { parse_quote!(_: &__EffectScope) } else { parse_quote!(_: #ty) }
    };
    Some(item.params.iter().enumerate().map(input).collect())
}
