//! Rules on `durable` and `poll`: what runs without the caller holds nothing of the caller's.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{GenericParam, TypeImplTrait};

use crate::args::Args;
use crate::errors::Errors;
use crate::item::Item;

pub(super) fn check(args: &Args, item: &Item, errors: &mut Errors) {
    polls_what_it_owns(args, errors);
    let Some(durable) = &args.durable else { return };
    if args.attached {
        errors.at(
            durable,
            "an effect cannot be both `durable` and `attached`: a durable one is finished without its caller, and the body of an \
             attached one borrows from it; remove one",
        );
    }
    is_a_free_function(item, errors);
    is_one_function(item, errors);
}

fn polls_what_it_owns(args: &Args, errors: &mut Errors) {
    if let (Some(poll), true) = (&args.poll, args.attached) {
        errors.at(
            poll,
            "an `attached` effect cannot have `poll = path`, which is called on a task of its own: implement `Provider::poll`, or \
             remove `attached`",
        );
    }
}

/// A recovery in another process has no `self`.
fn is_a_free_function(item: &Item, errors: &mut Errors) {
    const RULE: &str = "a `durable` effect is a free function, because it is also called without its caller, in another \
        process: take what the method's `self` holds as a `#[skip]` argument, and give it with `.resource(…)`";
    if let Some(receiver) = item.function.sig.receiver() {
        errors.at(receiver, RULE);
    } else if let Some(path) = item.self_type() {
        errors.at(&path, RULE);
    }
}

/// Stored arguments name no type.
fn is_one_function(item: &Item, errors: &mut Errors) {
    const RULE: &str = "a `durable` effect cannot be generic, because its stored arguments do not say of which types they are: \
        name the types, in one function each with an `operation` of its own";
    struct FirstImpl<'ast>(Option<&'ast TypeImplTrait>);
    impl<'ast> Visit<'ast> for FirstImpl<'ast> {
        fn visit_type_impl_trait(&mut self, found: &'ast TypeImplTrait) {
            self.0.get_or_insert(found);
            visit::visit_type_impl_trait(self, found);
        }
    }
    let generic = item.function.sig.generics.params.iter().find_map(|param| match param {
        GenericParam::Type(param) => Some(param.span()),
        GenericParam::Const(param) => Some(param.span()),
        _ => None,
    });
    if let Some(span) = generic {
        errors.push(syn::Error::new(span, RULE));
        return;
    }
    for param in item.params.iter().skip(1) {
        let mut first = FirstImpl(None);
        first.visit_type(&param.ty);
        if let Some(found) = first.0 {
            errors.at(found, RULE);
        }
    }
}
