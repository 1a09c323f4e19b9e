//! The tokens of a valid effect: a wrapper that callers see, and the user's function as its body.

mod attached;
mod body;
mod call;
mod descriptor;
mod spans;
mod work;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Generics, Path, Receiver, ReceiverKind, Signature};

use self::spans::located;
use crate::args::Keying;
use crate::validate::{Argument, Effect};

/// Callers pass any scope; the body sees the context. The body is an `async fn` and no closure, so that a type error in it
/// lands on the user's expression.
pub(crate) fn expand(effect: &Effect) -> TokenStream {
    let private = private(&effect.args.krate);
    let body = body::body(effect);
    let descriptor = descriptor::descriptor(effect, &private);
    let (outer, call) = if effect.args.attached {
        attached::wrapper(effect, &private)
    } else {
        (Outer::of(effect, &private), call::call(effect, &private))
    };
    let recovery = work::recovery(effect, &private);
    let mut wrapper = outer.signature(effect, &private);
    let (sibling, nested) = if effect.is_of_a_type { (Some(body), None) } else { (None, Some(body)) };
    // In the user's own braces, so that what is said of the function is said at its signature.
    effect
        .block
        .brace_token
        .surround(&mut wrapper, |inside| inside.extend(quote!(#nested #descriptor #recovery #call)));
    quote!(#wrapper #sibling)
}

/// The signature that callers see, but for the scope.
struct Outer {
    generics: Generics,
    receiver: Option<Receiver>,
    parameters: Vec<TokenStream>,
    output: TokenStream,
}

impl Outer {
    fn of(effect: &Effect, private: &TokenStream) -> Self {
        let Effect { return_ty, value_ty, error_ty, .. } = effect;
        // Located where the user's return type is, so that the wrapper's signature ends there, for whatever is said of it.
        let private = located(private, return_ty);
        let parameter = |Argument { ident, ty, .. }: &Argument| quote!(#ident: #ty);
        Self {
            generics: effect.sig.generics.clone(),
            receiver: effect.receiver.clone(),
            parameters: effect.arguments.iter().map(parameter).collect(),
            output: quote_spanned!(return_ty.span()=> #private::Call<#value_ty, #error_ty>),
        }
    }

    /// The scope is an `impl Trait`, so that callers can still name the function's own parameters.
    fn signature(mut self, effect: &Effect, private: &TokenStream) -> TokenStream {
        let Effect { vis, context, return_ty, .. } = effect;
        let Signature { fn_token, ident, .. } = &effect.sig;
        let attrs = body::attributes_of_wrapper(effect);
        let scope = match effect.keying {
            Keying::BusinessIdentity => quote!(#private::EffectScope),
            Keying::ActivityRecipe => quote!(#private::NodeScope),
        };
        if let Some(receiver) = &mut self.receiver
            && matches!(receiver.kind, ReceiverKind::Value | ReceiverKind::Typed(..))
        {
            // It is the body's variable that may be `mut`.
            receiver.mutability = None;
        }
        let receiver = self.receiver.map(|receiver| quote!(#receiver,));
        let where_clause = self.generics.where_clause.take();
        let Self { generics, parameters, output, .. } = self;
        let arrow = quote_spanned!(return_ty.span()=> ->);
        quote! {
            #(#attrs)*
            #vis #fn_token #ident #generics(
                #receiver
                #context: &(impl #scope + ?::core::marker::Sized),
                #(#parameters),*
            ) #arrow #output #where_clause
        }
    }
}

fn private(krate: &Path) -> TokenStream {
    quote!(#krate::__private)
}

/// The names of a function's own type and constant parameters, for a call that names them.
fn turbofish(generics: &Generics) -> TokenStream {
    let names: Vec<_> = generics
        .params
        .iter()
        .filter_map(|param| match param {
            syn::GenericParam::Type(param) => Some(param.ident.to_token_stream()),
            syn::GenericParam::Const(param) => Some(param.ident.to_token_stream()),
            _ => None,
        })
        .collect();
    if names.is_empty() { TokenStream::new() } else { quote!(::<#(#names),*>) }
}
