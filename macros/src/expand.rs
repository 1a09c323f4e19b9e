//! The tokens of a valid effect: a wrapper that callers see, with the user's function inside.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Path, Signature};

use crate::args::{Args, Class, Keying};
use crate::duration::Millis;
use crate::validate::{Argument, Effect, Role};

/// Callers pass any scope; the body sees the context. The body is a nested `async fn` and no closure, so that a type error in
/// it lands on the user's expression.
pub(crate) fn expand(effect: &Effect) -> TokenStream {
    let private = private(&effect.args.krate);
    let Effect { attrs, vis, context, .. } = effect;
    let Signature { fn_token, ident, .. } = &effect.sig;
    let scope = match effect.keying {
        Keying::BusinessIdentity => quote!(#private::EffectScope),
        Keying::ActivityRecipe => quote!(#private::NodeScope),
    };
    let parameters = effect.arguments.iter().map(|Argument { ident, ty, .. }| quote!(#ident: #ty));
    let output = output(effect, &private);
    let body = body(effect);
    let descriptor = descriptor(effect, &private);
    let call = call(effect, &private);
    let mut wrapper = quote! {
        #(#attrs)*
        #vis #fn_token #ident<__EffectScope: #scope + ?::core::marker::Sized>(
            #context: &__EffectScope,
            #(#parameters),*
        ) #output
    };
    // In the user's own braces, so that what is said of the function is said at its signature.
    effect.block.brace_token.surround(&mut wrapper, |inside| inside.extend(quote!(#body #descriptor #call)));
    wrapper
}

/// Located where the user's return type is, so that the wrapper's signature ends there, for whatever is said of it.
fn output(effect: &Effect, private: &TokenStream) -> TokenStream {
    let Effect { return_ty, value_ty, error_ty, .. } = effect;
    let private = located(private, return_ty);
    quote_spanned!(return_ty.span()=> -> #private::Call<#value_ty, #error_ty>)
}

fn private(krate: &Path) -> TokenStream {
    quote!(#krate::__private)
}

/// The user's function. Lints that would repeat what is said of the wrapper, or that an effect's shape forces, are off.
fn body(effect: &Effect) -> TokenStream {
    let Effect { context, context_ty, block, sig, .. } = effect;
    let output = &sig.output;
    let parameters =
        effect.arguments.iter().map(|Argument { pat, ty, lints, .. }| quote!(#(#lints)* #pat: #ty));
    quote! {
        #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value, clippy::unused_async)]
        async fn __effect_body(#context: #context_ty, #(#parameters),*) #output #block
    }
}

fn descriptor(effect: &Effect, private: &TokenStream) -> TokenStream {
    let Effect { args, keying, operation, .. } = effect;
    let keying = match keying {
        Keying::BusinessIdentity => quote!(BusinessIdentity),
        Keying::ActivityRecipe => quote!(ActivityRecipe),
    };
    let setters = setters(args, private);
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

fn call(effect: &Effect, private: &TokenStream) -> TokenStream {
    let Effect { args, keying, context, value_ty, error_ty, .. } = effect;
    let look_up = args.on_unknown.as_ref().and_then(|on_unknown| on_unknown.look_up.as_ref());
    let function = match (keying, look_up) {
        (Keying::BusinessIdentity, None) => quote!(call),
        (Keying::BusinessIdentity, Some(_)) => quote!(call_reconciled),
        (Keying::ActivityRecipe, None) => quote!(call_recipe),
        (Keying::ActivityRecipe, Some(_)) => quote!(call_recipe_reconciled),
    };
    let owned = effect.arguments.iter().map(|argument| owned(argument, private));
    let key = matches!(keying, Keying::BusinessIdentity).then(|| key_fields(effect, private));
    let arguments = arguments(effect, private);
    let mut body = closure(effect, private, &run_body(effect, private));
    let look_up = look_up.map(|path| closure(effect, private, &run_look_up(path, effect, private)));
    if look_up.is_some() {
        // Of the two closures, the later one may take the arguments themselves.
        let clones = clones(effect);
        body = quote!({ #(#clones)* #body });
    }
    let inferred = look_up.iter().map(|_| quote!(, _, _));
    // The types are named, so that a missing `Outcome` or `Failure` is reported at the type that the user wrote.
    quote! {
        #[allow(clippy::used_underscore_binding)]
        let __effect_scope = #context;
        #(#owned)*
        #private::#function::<_, #value_ty, #error_ty, _, _ #(#inferred)*>(
            __effect_scope,
            &__EFFECT,
            #key
            #arguments,
            #body,
            #look_up
        )
    }
}

/// Asserts what an argument must be, at its type: once, here, and not wherever it is used.
fn owned(Argument { ident, local, ty, .. }: &Argument, private: &TokenStream) -> TokenStream {
    let value = at(ident, ty);
    let private = located(private, ty);
    quote_spanned! {ty.span()=>
        #[allow(clippy::used_underscore_binding)]
        let #local = #private::owned::<#ty>(#value);
    }
}

fn key_fields(effect: &Effect, private: &TokenStream) -> TokenStream {
    let fields =
        effect.arguments.iter().filter(|argument| matches!(argument.role, Role::Key)).map(|argument| {
            let Argument { local, ty, name, .. } = argument;
            let value = at(local, ty);
            quote_spanned!(ty.span()=> .field(#name, &#value))
        });
    quote!(#private::KeyFields::new()#(#fields)*,)
}

fn arguments(effect: &Effect, private: &TokenStream) -> TokenStream {
    let entries = effect.arguments.iter().filter_map(|argument| {
        let Argument { local, ty, name, role, .. } = argument;
        let value = at(local, ty);
        let private = &located(private, ty);
        match role {
            Role::Key => Some(quote_spanned!(ty.span()=> .argument(#name, &#private::AsKey(&#value)))),
            Role::Plain => Some(quote_spanned!(ty.span()=> .argument(#name, &#value))),
            Role::Json => Some(quote_spanned!(ty.span()=> .json_argument(#name, &#value))),
            Role::Skip => None,
        }
    });
    quote!(#private::Arguments::new()#(#entries)*)
}

/// A closure over the arguments that runs once an attempt, each time over clones of its own.
fn closure(effect: &Effect, private: &TokenStream, run: &TokenStream) -> TokenStream {
    let clones = clones(effect);
    // A body that is not `Send` is reported here, so here is the function's name.
    let place = &effect.sig.ident;
    let context = body_context(place);
    quote_spanned! {own(place)=>
        move |#context: #private::EffectContext| {
            #(#clones)*
            async move { #run }
        }
    }
}

fn clones(effect: &Effect) -> impl Iterator<Item = TokenStream> {
    effect.arguments.iter().map(|Argument { local, ty, .. }| {
        let value = at(local, ty);
        quote_spanned!(ty.span()=> let #local = ::core::clone::Clone::clone(&#value);)
    })
}

/// Awaits the body; another `Result` than the crate's is reported at the return type.
fn run_body(effect: &Effect, private: &TokenStream) -> TokenStream {
    let Effect { context_ty, value_ty, error_ty, return_ty, .. } = effect;
    let context = body_context(context_ty);
    let context = quote_spanned!(context_ty.span()=> &#context);
    let values = effect.arguments.iter().map(|argument| &argument.local);
    let returned = quote!(__effect_body(#context, #(#values),*).await);
    quote!(#private::returned::<#value_ty, #error_ty, #return_ty>(#returned))
}

/// Awaits the look-up; whatever does not fit is reported at its path.
fn run_look_up(path: &Path, effect: &Effect, private: &TokenStream) -> TokenStream {
    let Effect { value_ty, error_ty, .. } = effect;
    let values = effect.arguments.iter().map(|argument| at(&argument.local, path));
    let private = located(private, path);
    let context = body_context(path);
    quote_spanned! {path.span()=>
        #private::looked_up::<#value_ty, #error_ty, _>(#path(&#context, #(#values),*).await)
    }
}

/// The closure's context, located there; everywhere the same variable, also where a macro wrote the place.
fn body_context(place: &impl Spanned) -> Ident {
    Ident::new("__effect_cx", own(place))
}

/// That location, with the expansion's own names.
fn own(place: &impl Spanned) -> Span {
    Span::call_site().located_at(place.span())
}

/// The argument's variable, located at its type: a bound that its type does not meet is reported there.
fn at(ident: &Ident, place: &impl Spanned) -> Ident {
    let mut located = ident.clone();
    located.set_span(ident.span().located_at(place.span()));
    located
}

/// A path of the crate as if it were written there: tokens of two origins have no span in common but the whole attribute's.
fn located(path: &TokenStream, place: &impl Spanned) -> TokenStream {
    let relocate = |mut token: TokenTree| {
        token.set_span(place.span());
        token
    };
    path.clone().into_iter().map(relocate).collect()
}
