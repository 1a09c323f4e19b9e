//! The functions of an effect together: for one that is polled, or that is finished without its caller.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

use super::body;
use super::call::{ask, clones, closure, closure_with, look_up, run_look_up, shared};
use super::spans::{located, own};
use crate::validate::{Argument, Effect, Role};

/// Whether the effect has more than a body and a look-up.
pub(super) fn is_needed(effect: &Effect) -> bool {
    effect.args.poll.is_some() || effect.args.durable.is_some()
}

/// All that can be done, over the arguments that are in scope: the last closure takes them, those before it clones.
pub(super) fn work(effect: &Effect, private: &TokenStream) -> TokenStream {
    let Effect { value_ty, error_ty, .. } = effect;
    let body = closure(effect, private, &body::run(effect, private));
    let look_up = look_up(effect).map(|path| closure(effect, private, &run_look_up(path, effect, private)));
    let poll = effect.args.poll.as_ref().map(|path| poll(path, effect, private));
    let clones = clones(effect);
    let body = if look_up.is_some() || poll.is_some() { quote!({ #clones #body }) } else { body };
    let look_up = look_up.map(|look_up| if poll.is_some() { quote!({ #clones #look_up }) } else { look_up });
    let place = located(private, &effect.sig.ident);
    let look_up = look_up.map(|look_up| quote!(.look_up::<#value_ty, #error_ty, _, _>(#look_up)));
    let poll = poll.map(|poll| quote!(.poll::<#value_ty, #error_ty, _, _>(#poll)));
    // A body that is not `Send` is reported here, so here is the function's name.
    quote_spanned!(own(&effect.sig.ident)=> #place::Work::new::<#value_ty, #error_ty, _, _>(#body) #look_up #poll)
}

fn poll(path: &Path, effect: &Effect, private: &TokenStream) -> TokenStream {
    let run = ask(path, "polled", &quote!(&__effect_handle,), effect, private);
    closure_with(effect, private, &quote!(, __effect_handle: ::std::string::String), &run)
}

/// The arguments for storage, before anything takes them.
pub(super) fn input(effect: &Effect, private: &TokenStream) -> TokenStream {
    if effect.args.durable.is_none() {
        return quote!(::core::option::Option::None);
    }
    let arguments = effect.arguments.iter().filter(|argument| is_stored(argument)).map(|argument| {
        let Argument { ty, name, named_ty, .. } = argument;
        let value = shared(argument);
        quote_spanned!(ty.span()=> .argument::<#named_ty>(#name, #value))
    });
    quote!(::core::option::Option::Some(#private::Input::new() #(#arguments)*))
}

fn is_stored(argument: &Argument) -> bool {
    !matches!(argument.role, Role::Skip)
}

/// How a recovery gets at the functions: over what was stored, and what the executor was given.
pub(super) fn recovery(effect: &Effect, private: &TokenStream) -> Option<TokenStream> {
    effect.args.durable.as_ref()?;
    let operation = &effect.operation;
    let arguments = effect.arguments.iter().map(|argument| {
        let Argument { local, ty, name, .. } = argument;
        let take = if is_stored(argument) { quote!(argument) } else { quote!(resource) };
        quote_spanned!(ty.span()=> let #local: #ty = __effect_stored.#take(#name)?;)
    });
    let resources = effect.arguments.iter().filter(|argument| !is_stored(argument)).map(|argument| {
        let Argument { ty, name, .. } = argument;
        let private = located(private, ty);
        quote_spanned!(ty.span()=> #private::ResourceRef::of::<#ty>(#name))
    });
    let work = work(effect, private);
    Some(quote! {
        #[allow(clippy::used_underscore_binding)]
        fn __effect_recover(
            __effect_stored: &#private::Stored<'_>,
        ) -> ::core::result::Result<#private::Work, #private::Unreadable> {
            #(#arguments)*
            ::core::result::Result::Ok(#work)
        }
        #private::inventory::submit! {
            #private::Recoverable::new(#operation, &[#(#resources),*], __effect_recover)
        }
    })
}
