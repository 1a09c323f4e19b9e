//! The call of an effect whose body runs on a task of its own.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Path, Receiver, ReceiverKind, Type};

use super::body;
use super::spans::{at, body_context, located, own, relocated};
use super::work;
use crate::args::Keying;
use crate::item::{SelfForm, bare};
use crate::validate::{Argument, Effect, Role};

pub(super) fn call(effect: &Effect, private: &TokenStream) -> TokenStream {
    let Effect { keying, value_ty, error_ty, .. } = effect;
    if work::is_needed(effect) {
        return call_with_work(effect, private);
    }
    let look_up = look_up(effect);
    let function = match (keying, look_up) {
        (Keying::BusinessIdentity, None) => "call",
        (Keying::BusinessIdentity, Some(_)) => "call_reconciled",
        (Keying::ActivityRecipe, None) => "call_recipe",
        (Keying::ActivityRecipe, Some(_)) => "call_recipe_reconciled",
    };
    let scope = scope(effect);
    let receiver = receiver(effect, private);
    let owned = effect.arguments.iter().map(|argument| owned(argument, private));
    let asked = asked(effect, private);
    let mut body = closure(effect, private, &body::run(effect, private));
    let look_up = look_up.map(|path| closure(effect, private, &run_look_up(path, effect, private)));
    if look_up.is_some() {
        // Of the two closures, the later one may take the arguments themselves.
        let clones = clones(effect);
        body = quote!({ #clones #body });
    }
    // A body that is not `Send` is reported here, so here is the function's name.
    let place = own(&effect.sig.ident);
    let (path, function) = (relocated(private, place), Ident::new(function, place));
    let inferred = look_up.iter().map(|_| quote!(, _, _));
    // The types are named, so that a missing `Outcome` or `Failure` is reported at the type that the user wrote.
    let call = quote_spanned! {place=>
        #path::#function::<_, #value_ty, #error_ty, _, _ #(#inferred)*>(
            __effect_scope,
            &__EFFECT,
            #asked,
            #body,
            #look_up
        )
    };
    quote! {
        #scope
        #receiver
        #(#owned)*
        #call
    }
}

/// The call of an effect that is more than a body and a look-up.
fn call_with_work(effect: &Effect, private: &TokenStream) -> TokenStream {
    let Effect { keying, value_ty, error_ty, .. } = effect;
    let function = match keying {
        Keying::BusinessIdentity => "call_work",
        Keying::ActivityRecipe => "call_recipe_work",
    };
    let (scope, receiver) = (scope(effect), receiver(effect, private));
    let owned = effect.arguments.iter().map(|argument| owned(argument, private));
    let (asked, input) = (asked(effect, private), work::input(effect, private));
    let work = work::work(effect, private);
    let place = own(&effect.sig.ident);
    let (path, function) = (relocated(private, place), Ident::new(function, place));
    quote! {
        #scope
        #receiver
        #(#owned)*
        let __effect_input = #input;
        #path::#function::<_, #value_ty, #error_ty>(__effect_scope, &__EFFECT, #asked, #work, __effect_input)
    }
}

pub(super) fn look_up(effect: &Effect) -> Option<&Path> {
    effect.args.on_unknown.as_ref()?.look_up.as_ref()
}

pub(super) fn scope(effect: &Effect) -> TokenStream {
    let context = &effect.context;
    quote! {
        #[allow(clippy::used_underscore_binding)]
        let __effect_scope = #context;
    }
}

/// The key fields, where there are any, and the arguments: both as arguments of a call.
pub(super) fn asked(effect: &Effect, private: &TokenStream) -> TokenStream {
    let key = matches!(effect.keying, Keying::BusinessIdentity).then(|| key_fields(effect, private));
    let arguments = arguments(effect, private);
    quote!(#key #arguments)
}

/// Takes `self` along: what it must be is asserted where it is written.
fn receiver(effect: &Effect, private: &TokenStream) -> Option<TokenStream> {
    let receiver = effect.receiver.as_ref()?;
    let (this, ty, self_token) = (this(receiver), self_type(receiver), &receiver.self_token);
    let private = located(private, self_token);
    let borrowed = if SelfForm::of(receiver) == SelfForm::Owned { quote!(&) } else { quote!() };
    Some(quote_spanned!(self_token.span()=> let #this = #private::receiver::<#ty>()(#borrowed #self_token);))
}

/// The variable that `self` becomes: the same everywhere, also where a macro wrote the method.
pub(super) fn this(receiver: &Receiver) -> Ident {
    Ident::new("__effect_self", receiver.self_token.span())
}

/// The type of `self`, without its reference.
pub(super) fn self_type(receiver: &Receiver) -> TokenStream {
    match &receiver.kind {
        ReceiverKind::Typed(_, ty) => match bare(ty) {
            Type::Reference(reference) => reference.elem.to_token_stream(),
            ty => ty.to_token_stream(),
        },
        _ => quote_spanned!(receiver.self_token.span()=> Self),
    }
}

/// The first argument of the body, and of a look-up, where there is a `self`.
pub(super) fn receiver_argument(effect: &Effect) -> Option<TokenStream> {
    let receiver = effect.receiver.as_ref()?;
    let this = this(receiver);
    Some(match SelfForm::of(receiver) {
        SelfForm::Shared if !effect.args.attached => quote!(&#this,),
        _ => quote!(#this,),
    })
}

/// Asserts what an argument must be, at its type: once, here, and not wherever it is used.
fn owned(Argument { ident, local, ty, named_ty, .. }: &Argument, private: &TokenStream) -> TokenStream {
    let value = at(ident, ty);
    let private = located(private, ty);
    quote_spanned! {ty.span()=>
        #[allow(clippy::used_underscore_binding)]
        let #local = #private::owned::<#named_ty>(#value);
    }
}

fn key_fields(effect: &Effect, private: &TokenStream) -> TokenStream {
    let fields =
        effect.arguments.iter().filter_map(|argument| {
            let Argument { ty, name, role, .. } = argument;
            let Role::Key(since, until) = role else { return None };
            let value = shared(argument);
            Some(match (*since, until) {
                (1, None) => quote_spanned!(ty.span()=> .field(#name, #value)),
                (since, None) => {
                    quote_spanned!(ty.span()=> .field_in(#name, #value, #since, ::core::option::Option::None))
                }
                (since, Some(until)) => {
                    quote_spanned!(ty.span()=> .field_in(#name, #value, #since, ::core::option::Option::Some(#until)))
                }
            })
        });
    quote!(#private::KeyFields::new()#(#fields)*,)
}

fn arguments(effect: &Effect, private: &TokenStream) -> TokenStream {
    let mut new = quote!(#private::Arguments::new());
    let entries: Vec<_> = effect
        .arguments
        .iter()
        .filter_map(|argument| {
            let Argument { ty, name, role, .. } = argument;
            let value = shared(argument);
            let private = &located(private, ty);
            Some(match role {
                Role::Key(..) => quote_spanned!(ty.span()=> .argument(#name, &#private::AsKey(#value))),
                Role::Plain => quote_spanned!(ty.span()=> .argument(#name, #value)),
                Role::Json => quote_spanned!(ty.span()=> .json_argument(#name, #value)),
                Role::Secret => quote_spanned!(ty.span()=> .secret_argument(#name, #value)),
                Role::SecretJson => quote_spanned!(ty.span()=> .secret_json_argument(#name, #value)),
                Role::Skip => return None,
            })
        })
        .collect();
    if effect.arguments.iter().any(|argument| matches!(argument.role, Role::Secret | Role::SecretJson)) {
        new = quote!(#private::secret_arguments(__effect_scope));
    }
    quote!(#new #(#entries)*)
}

/// A shared reference to the argument's value.
pub(super) fn shared(Argument { local, ty, lent, .. }: &Argument) -> TokenStream {
    let value = at(local, ty);
    if *lent { quote_spanned!(ty.span()=> &*#value) } else { quote_spanned!(ty.span()=> &#value) }
}

/// A closure over the arguments that runs once an attempt, each time over clones of its own.
pub(super) fn closure(effect: &Effect, private: &TokenStream, run: &TokenStream) -> TokenStream {
    closure_with(effect, private, &TokenStream::new(), run)
}

/// [`closure`] with a further parameter.
pub(super) fn closure_with(
    effect: &Effect,
    private: &TokenStream,
    parameter: &TokenStream,
    run: &TokenStream,
) -> TokenStream {
    let clones = clones(effect);
    // A body that is not `Send` is reported here, so here is the function's name.
    let place = &effect.sig.ident;
    let context = body_context(place);
    quote_spanned! {own(place)=>
        move |#context: #private::EffectContext #parameter| {
            #clones
            async move { #run }
        }
    }
}

/// Variables of one attempt's own, of the same names.
pub(super) fn clones(effect: &Effect) -> TokenStream {
    let arguments = effect.arguments.iter().map(|Argument { local, ty, lent, .. }| {
        let value = at(local, ty);
        if *lent {
            quote_spanned!(ty.span()=> let #local = &mut *#value;)
        } else {
            quote_spanned!(ty.span()=> let #local = ::core::clone::Clone::clone(&#value);)
        }
    });
    let receiver = effect.receiver.as_ref().map(|receiver| {
        let this = this(receiver);
        match SelfForm::of(receiver) {
            SelfForm::Mutable => quote!(let #this = &mut *#this;),
            _ => quote_spanned!(this.span()=> let #this = ::core::clone::Clone::clone(&#this);),
        }
    });
    quote!(#receiver #(#arguments)*)
}

/// Awaits the look-up; whatever does not fit is reported at its path.
pub(super) fn run_look_up(path: &Path, effect: &Effect, private: &TokenStream) -> TokenStream {
    ask(path, "looked_up", &TokenStream::new(), effect, private)
}

/// Awaits a function that asks the provider, with the effect's own arguments behind the context and `first`.
pub(super) fn ask(
    path: &Path,
    checked: &str,
    first: &TokenStream,
    effect: &Effect,
    private: &TokenStream,
) -> TokenStream {
    let Effect { value_ty, error_ty, .. } = effect;
    let checked = Ident::new(checked, path.span());
    let place = own(path);
    // Names of the expansion's own: for the user's, the compiler would suggest edits of the path in the attribute.
    let names: Vec<_> =
        (0..effect.arguments.len()).map(|n| format_ident!("__effect_asked_{n}", span = place)).collect();
    let values = effect.arguments.iter().map(|argument| at(&argument.local, path));
    let receiver = receiver_argument(effect);
    let private = located(private, path);
    let context = body_context(path);
    quote_spanned! {path.span()=> {
        #(let #names = #values;)*
        #private::#checked::<#value_ty, #error_ty, _>(#path(#receiver &#context, #first #(#names),*).await)
    }}
}
