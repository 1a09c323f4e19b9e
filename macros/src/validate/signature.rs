//! Rules on the function as a whole: what kind of function it is, its context and its return type.

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{FnArg, GenericParam, Generics, Path, ReturnType, Safety, Signature, Type};

use crate::args::Args;
use crate::errors::Errors;
use crate::item::{Item, Param, SelfForm, bare, is_boxed_future, last_segment, result_arguments};

/// Returns whether the parameters are worth judging one by one.
pub(super) fn check(args: &Args, item: &Item, errors: &mut Errors) -> bool {
    let sig = &item.function.sig;
    if is_boxed_future(&sig.output) && sig.asyncness.is_none() {
        errors.at(
            &sig.ident,
            "`#[effect]` cannot wrap a trait's method (this one returns a boxed future, as `async_trait` writes it): \
             make the effect an `async fn` in an inherent `impl`, or a free one, and call that from the trait's method",
        );
        return false;
    }
    self_is_shared(args, sig, errors);
    is_async(sig, errors);
    no_qualifiers(sig, errors);
    no_lifetimes(args, sig, errors);
    provider_is_one_type(args, sig, errors);
    returns_result(sig, errors);
    context(item, errors)
}

/// The body may run again, and on another task.
fn self_is_shared(args: &Args, sig: &Signature, errors: &mut Errors) {
    let Some(receiver) = sig.receiver() else { return };
    if SelfForm::of(receiver) == SelfForm::Mutable && !args.attached {
        errors.at(
            receiver,
            "an effect cannot take `&mut self`, because the body runs on a task of its own, with a clone of `self`: \
             take `&self`, or add `attached` to run it in the caller's task",
        );
    }
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

/// Only what runs in the caller's task can borrow from the caller.
fn no_lifetimes(args: &Args, sig: &Signature, errors: &mut Errors) {
    if args.attached {
        return;
    }
    if let Some(lifetime) = sig.generics.lifetimes().next() {
        errors.at(
            lifetime,
            "an effect cannot borrow, because the body runs on a task of its own and may outlive the caller: \
             remove the lifetime and own the data, or add `attached` to run the body in the caller's task",
        );
    }
}

/// There is one descriptor for all instances of a generic function.
fn provider_is_one_type(args: &Args, sig: &Signature, errors: &mut Errors) {
    struct Names<'a> {
        generics: &'a Generics,
        found: Option<Path>,
    }
    impl<'ast> Visit<'ast> for Names<'_> {
        fn visit_path(&mut self, path: &'ast Path) {
            let first = path.segments.first().map(|segment| &segment.ident);
            let mut names = self.generics.params.iter().map(|param| match param {
                GenericParam::Type(param) => Some(&param.ident),
                GenericParam::Const(param) => Some(&param.ident),
                _ => None,
            });
            if first.is_some_and(|first| first == "Self" || names.any(|name| name == Some(first))) {
                self.found.get_or_insert(path.clone());
            }
            visit::visit_path(self, path);
        }
    }
    let Some(provider) = &args.provider else { return };
    let mut names = Names { generics: &sig.generics, found: None };
    names.visit_type(provider);
    if let Some(path) = names.found {
        errors.at(
            path,
            "an effect has one provider, whatever its type parameters: name one type, or write one effect a provider",
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
        Some(later) => errors.at(
            item.function.sig.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_))).nth(later),
            format!("the context comes first; {FORM}"),
        ),
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
            text if text.contains("Scope") || text.contains("NodeExecution") => {
                "the body sees the context, whatever scope the caller passes"
            }
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
    let attributes = [&context.key, &context.skip, &context.secret, &context.fingerprint, &context.others];
    if let Some(attr) = attributes.into_iter().flatten().next() {
        errors
            .at(attr, "the context takes no attribute: it is neither in the identity nor in the fingerprint");
    }
}
