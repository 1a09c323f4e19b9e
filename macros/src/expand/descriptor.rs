//! What the options say, as constant data.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::args::{Args, Class, Keying};
use crate::duration::Millis;
use crate::validate::{Effect, Role};

/// One static for all instances of a generic function: it names none of its parameters.
pub(super) fn descriptor(effect: &Effect, private: &TokenStream) -> TokenStream {
    let Effect { args, keying, operation, .. } = effect;
    let keying = match keying {
        Keying::BusinessIdentity => quote!(BusinessIdentity),
        Keying::ActivityRecipe => quote!(ActivityRecipe),
    };
    let mut setters = setters(args, private);
    if effect.arguments.iter().any(|argument| matches!(argument.role, Role::Secret | Role::SecretJson)) {
        setters.extend(quote!(.secret()));
    }
    if args.attached {
        setters.extend(quote!(.attached()));
    }
    if args.durable.is_some() {
        setters.extend(quote!(.durable()));
    }
    quote! {
        static __EFFECT: #private::Descriptor = #private::Descriptor::new(
            #operation,
            #private::Keying::#keying,
            ::core::concat!(::core::module_path!(), " (", ::core::file!(), ":", ::core::line!(), ")"),
        )
        #setters;
        #private::inventory::submit! { #private::Registered(&__EFFECT) }
    }
}

fn setters(args: &Args, private: &TokenStream) -> TokenStream {
    let mut setters = TokenStream::new();
    let mut set = |name: &str, value: Option<TokenStream>| {
        if let Some(value) = value {
            let name = Ident::new(name, Span::call_site());
            setters.extend(quote!(.#name(#value)));
        }
    };
    let ms = |duration: &Option<Millis>| duration.as_ref().map(|duration| duration.ms.to_token_stream());
    let class = |class: Class| match class {
        Class::Resend => quote!(#private::RecoveryClass::Resend),
        Class::Reconcile => quote!(#private::RecoveryClass::Reconcile),
        Class::Transactional => quote!(#private::RecoveryClass::Transactional),
        Class::Hold => quote!(#private::RecoveryClass::Hold),
        Class::Rerun => quote!(#private::RecoveryClass::Rerun),
    };
    set("version", args.version.map(ToTokens::into_token_stream));
    set(
        "provider",
        args.provider.as_ref().map(|ty| quote_spanned!(ty.span()=> #private::ProviderRef::of::<#ty>())),
    );
    set("on_unknown", args.on_unknown.as_ref().map(|on_unknown| class(on_unknown.class)));
    set("attempt_timeout_ms", ms(&args.attempt_timeout));
    set("lease_ms", ms(&args.lease));
    set("wait_ms", ms(&args.wait));
    set("retry_attempts", args.retry.attempts.map(ToTokens::into_token_stream));
    set("retry_base_ms", ms(&args.retry.base));
    set("retry_delay_max_ms", ms(&args.retry.max));
    set("retry_elapsed_max_ms", ms(&args.retry.elapsed));
    setters
}
