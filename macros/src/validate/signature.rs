//! Rules on the function as a whole: what kind of function it is, its context and its return type.

use quote::ToTokens;
use syn::{ReturnType, Safety, Signature, Type};

use crate::errors::Errors;
use crate::item::{Item, Param, bare, is_boxed_future, last_segment, result_arguments};

/// Returns whether the parameters are worth judging one by one.
pub(super) fn check(item: &Item, errors: &mut Errors) -> bool {
    let sig = &item.function.sig;
    if is_boxed_future(&sig.output) && sig.asyncness.is_none() {
        errors.at(
            &sig.ident,
            "`#[effect]` cannot wrap a trait's method (this one returns a boxed future, as `async_trait` writes it): \
             make the effect a free `async fn`, and call that from the method",
        );
        return false;
    }
    if let Some(receiver) = sig.receiver() {
        errors.at(
            receiver,
            "`#[effect]` goes on a free function, not on a method: make it a free `async fn`, \
             and pass what it needs of `self` as arguments (a handle as `#[skip] client: Client`)",
        );
        return false;
    }
    is_async(sig, errors);
    no_qualifiers(sig, errors);
    no_generics(sig, errors);
    no_self_type(item, errors);
    returns_result(sig, errors);
    context(item, errors)
}

fn is_async(sig: &Signature, errors: &mut Errors) {
    if sig.asyncness.is_none() {
        errors.at(sig.fn_token, "an effect is an `async fn`: write `async` before `fn`");
    }
}

fn no_qualifiers(sig: &Signature, errors: &mut Errors) {
    if let Some(constness) = &sig.constness {
        errors.at(constness, "an effect cannot be `const`: remove `const`");
    }
    if matches!(sig.safety, Safety::Unsafe(_)) {
        errors.at(
            &sig.safety,
            "an effect cannot be an `unsafe fn`: the library calls it again after a crash, without the caller's promise; \
             put an `unsafe` block into the body",
        );
    }
    if let Some(abi) = &sig.abi {
        errors.at(abi, "an effect has Rust's own ABI: remove `extern`");
    }
    if let Some(variadic) = &sig.variadic {
        errors.at(variadic, "an effect cannot be variadic: name each argument");
    }
}

fn no_generics(sig: &Signature, errors: &mut Errors) {
    let generics = &sig.generics;
    if !generics.params.is_empty() {
        errors.at(
            &generics.params,
            "`#[effect]` does not take generic functions yet: name the types, or write one effect a type over a generic helper",
        );
    } else if let Some(clause) = &generics.where_clause {
        errors.at(clause, "`#[effect]` does not take a `where` clause yet: name the types instead");
    }
}

/// The body moves into a function of its own, where `Self` is not in scope.
fn no_self_type(item: &Item, errors: &mut Errors) {
    if let Some(path) = item.self_type() {
        errors.at(
            path.segments.first(),
            "`#[effect]` goes on a free function, where `Self` has no meaning: move the function out of the `impl` and name the type",
        );
    }
}

fn returns_result(sig: &Signature, errors: &mut Errors) {
    const FORM: &str =
        "write `-> effectual::Result<T, E>`: the outcome that is stored, and the error that says its verdict";
    match &sig.output {
        ReturnType::Default => errors.at(&sig.ident, format!("an effect returns a result; {FORM}")),
        ReturnType::Type(_, ty) if result_arguments(&sig.output).is_none() => {
            errors.at(ty, format!("an effect returns `Result` with both of its types named; {FORM}"));
        }
        ReturnType::Type(..) => {}
    }
}

/// The first parameter is `name: &EffectContext`; without one, the rest is not judged.
fn context(item: &Item, errors: &mut Errors) -> bool {
    const FORM: &str = "write `cx: &EffectContext` as the first parameter";
    let Some(first) = item.params.first() else {
        errors.at(&item.function.sig.ident, format!("an effect takes its context; {FORM}"));
        return false;
    };
    if first.is_context_like() {
        context_is_in_form(first, errors);
        return true;
    }
    match item.params.iter().position(Param::is_context_like) {
        Some(later) => {
            errors.at(item.function.sig.inputs.iter().nth(later), format!("the context comes first; {FORM}"))
        }
        None => errors.at(&first.pat, format!("an effect takes its context first; {FORM}, before this one")),
    }
    false
}

fn context_is_in_form(context: &Param, errors: &mut Errors) {
    let in_form = match bare(&context.ty) {
        Type::Reference(reference) => {
            reference.mutability.is_none()
                && reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident == "_")
                && last_segment(&reference.elem)
                    .is_some_and(|segment| segment.ident == "EffectContext" && segment.arguments.is_empty())
        }
        _ => false,
    };
    if !in_form {
        let why = match context.ty.to_token_stream().to_string() {
            text if text.contains("Scope") => "the body sees the context, whatever scope the caller passes",
            text if text.contains("mut") => "the body shares its context",
            _ => "the body borrows its context",
        };
        errors.at(&context.ty, format!("{why}: write `&EffectContext`"));
    }
    if context.ident().is_none() {
        errors.at(
            &context.pat,
            "the context needs a name: write `cx: &EffectContext`, or `_cx` if the body does not use it",
        );
    }
    let attributes = [&context.key, &context.skip, &context.fingerprint, &context.others];
    if let Some(attr) = attributes.into_iter().flatten().next() {
        errors
            .at(attr, "the context takes no attribute: it is neither in the identity nor in the fingerprint");
    }
}
