//! The wrapper of an effect whose body borrows, and so runs in the caller's task.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    GenericParam, Generics, Lifetime, ParenthesizedGenericArguments, Receiver, ReceiverKind, TypeFnPtr,
    TypeImplTrait, TypeReference, WherePredicate, parse_quote,
};

use super::Outer;
use super::body;
use super::call::{asked, clones, look_up, run_look_up, scope, self_type, this};
use super::spans::{at, body_context, located, own};
use crate::args::Keying;
use crate::item::SelfForm;
use crate::validate::{Argument, Effect};

/// The signature and what stands in it: the future holds the arguments and runs one turn after another.
pub(super) fn wrapper(effect: &Effect, private: &TokenStream) -> (Outer, TokenStream) {
    (outer(effect, private), call(effect, private))
}

fn call(effect: &Effect, private: &TokenStream) -> TokenStream {
    let Effect { keying, value_ty, error_ty, .. } = effect;
    let function = match keying {
        Keying::BusinessIdentity => quote!(attach),
        Keying::ActivityRecipe => quote!(attach_recipe),
    };
    let scope = scope(effect);
    let receiver = receiver(effect, private);
    let arguments = effect.arguments.iter().map(|argument| taken(argument, private));
    let asked = asked(effect, private);
    let turn = turn(effect, private);
    let place = located(private, &effect.sig.ident);
    // A body that is not `Send` is reported here, so here is the function's name.
    let future = quote_spanned! {own(&effect.sig.ident)=>
        #place::Attached::new(async move {
            let mut __effect_call = __effect_call.begin();
            while let ::core::option::Option::Some(__effect_turn) = __effect_call.next_turn().await {
                #turn
            }
            __effect_call.end().await
        })
    };
    quote! {
        #scope
        #receiver
        #(#arguments)*
        let __effect_call =
            #private::#function::<_, #value_ty, #error_ty>(__effect_scope, &__EFFECT, #asked);
        #future
    }
}

/// One attempt, or one look-up.
fn turn(effect: &Effect, private: &TokenStream) -> TokenStream {
    let context = body_context(&effect.sig.ident);
    let clones = clones(effect);
    let run = body::run(effect, private);
    let perform = quote!(__effect_turn.perform(async move { #run }).await;);
    let then = match look_up(effect) {
        Some(path) => {
            let ask = run_look_up(path, effect, private);
            quote! {
                if __effect_turn.is_look_up() {
                    __effect_turn.look_up(async move { #ask }).await;
                } else {
                    #perform
                }
            }
        }
        None => perform,
    };
    quote! {
        let (__effect_turn, #context) = __effect_turn;
        #clones
        #then
    }
}

/// Asserts what `self` must be, where it is written.
fn receiver(effect: &Effect, private: &TokenStream) -> Option<TokenStream> {
    let receiver = effect.receiver.as_ref()?;
    let (this, self_token) = (this(receiver), &receiver.self_token);
    let value = if SelfForm::of(receiver) == SelfForm::Owned {
        let (private, ty) = (located(private, self_token), self_type(receiver));
        quote_spanned!(self_token.span()=> #private::attached_argument::<#ty>(#self_token))
    } else {
        quote!(#self_token)
    };
    Some(quote!(let #this = #value;))
}

/// Asserts what an argument must be, at its type.
fn taken(Argument { ident, local, ty, named_ty, lent, .. }: &Argument, private: &TokenStream) -> TokenStream {
    let value = at(ident, ty);
    let private = located(private, ty);
    let value = if *lent {
        quote!(#value)
    } else {
        quote_spanned!(ty.span()=> #private::attached_argument::<#named_ty>(#value))
    };
    quote_spanned! {ty.span()=>
        #[allow(clippy::used_underscore_binding)]
        let #local = #value;
    }
}

/// Every lifetime of the arguments gets a name, and outlives the future's.
fn outer(effect: &Effect, private: &TokenStream) -> Outer {
    let mut outer = Outer::of(effect, private);
    let mut named = Named { all: future_lifetime(), new: Vec::new() };
    outer.parameters = effect
        .arguments
        .iter()
        .map(|Argument { ident, ty, .. }| {
            let mut ty = ty.clone();
            named.visit_type_mut(&mut ty);
            quote!(#ident: #ty)
        })
        .collect();
    if let Some(receiver) = &mut outer.receiver {
        named.name_receiver(receiver);
    }
    let all = &named.all;
    outlive(&mut outer.generics, all, &named.new);
    if effect.receiver.is_some() {
        outer.generics.make_where_clause().predicates.push(parse_quote!(Self: #all));
    }
    let Effect { return_ty, value_ty, error_ty, .. } = effect;
    let private = located(private, return_ty);
    outer.output = quote_spanned!(return_ty.span()=> #private::Attached<#all, #value_ty, #error_ty>);
    outer
}

/// Bounds every parameter by the future's lifetime, at the place where the parameter has its bounds already.
fn outlive(generics: &mut Generics, all: &Lifetime, new: &[Lifetime]) {
    let mut in_clause: Vec<WherePredicate> = Vec::new();
    for param in &mut generics.params {
        match param {
            GenericParam::Lifetime(param) => param.bounds.push(all.clone()),
            GenericParam::Type(param) if param.bounds.is_empty() => {
                let ident = &param.ident;
                in_clause.push(parse_quote!(#ident: #all));
            }
            GenericParam::Type(param) => param.bounds.push(parse_quote!(#all)),
            _ => {}
        }
    }
    if !in_clause.is_empty() {
        generics.make_where_clause().predicates.extend(in_clause);
    }
    let new = new.iter().map(|lifetime| -> GenericParam { parse_quote!(#lifetime: #all) });
    let given = std::mem::take(&mut generics.params);
    generics.params = std::iter::once(parse_quote!(#all)).chain(new).chain(given).collect();
}

fn future_lifetime() -> Lifetime {
    parse_quote!('__effect)
}

/// Names the lifetimes that are left out, as an `async fn` does.
struct Named {
    all: Lifetime,
    new: Vec<Lifetime>,
}

impl Named {
    fn next(&mut self) -> Lifetime {
        let ident = format_ident!("__effect_{}", self.new.len());
        let lifetime = Lifetime { apostrophe: ident.span(), ident };
        self.new.push(lifetime.clone());
        lifetime
    }

    fn name_receiver(&mut self, receiver: &mut Receiver) {
        match &mut receiver.kind {
            ReceiverKind::Reference(_, lifetime, _)
                if lifetime.as_ref().is_none_or(|lifetime| lifetime.ident == "_") =>
            {
                *lifetime = Some(self.next());
            }
            ReceiverKind::Typed(_, ty) => self.visit_type_mut(ty),
            _ => {}
        }
    }
}

impl VisitMut for Named {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        if reference.lifetime.is_none() {
            reference.lifetime = Some(self.next());
        }
        visit_mut::visit_type_reference_mut(self, reference);
    }
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = self.next();
        }
    }
    fn visit_type_impl_trait_mut(&mut self, impl_trait: &mut TypeImplTrait) {
        visit_mut::visit_type_impl_trait_mut(self, impl_trait);
        let all = &self.all;
        impl_trait.bounds.push(parse_quote!(#all));
    }
    // `fn(&str)` and `dyn Fn(&str)` borrow nothing themselves.
    fn visit_type_fn_ptr_mut(&mut self, _: &mut TypeFnPtr) {}
    fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut ParenthesizedGenericArguments) {}
}
