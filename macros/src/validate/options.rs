//! Rules on the options of `#[effect(…)]`, alone and together.

use proc_macro2::{Ident, Span};
use syn::LitStr;
use syn::ext::IdentExt;

use crate::args::{Args, Class, Keying};
use crate::duration::Millis;
use crate::errors::Errors;
use crate::item::Item;

pub(super) fn check(args: &Args, errors: &mut Errors) {
    keying_is_given(args, errors);
    lease_outlives_attempt(args, errors);
    resend_has_a_provider(args, errors);
    backoff_grows(args, errors);
}

/// The operation's name, pinned or taken from the function.
pub(super) fn operation(args: &Args, function: &Ident, errors: &mut Errors) -> LitStr {
    const GRAMMAR: &str = "1 to 128 characters of `A-Z a-z 0-9 . _ -`";
    let is_name = |text: &str| is_name(text, 128);
    match &args.operation {
        Some(pinned) => {
            if !is_name(&pinned.value()) {
                errors.at(pinned, format!("an operation is {GRAMMAR}, as in \"refund-order\""));
            }
            pinned.clone()
        }
        None => {
            let name = function.unraw().to_string();
            if !is_name(&name) {
                errors.at(
                    function,
                    format!(
                        "this name cannot name the operation, which is {GRAMMAR}: add `operation = \"refund-order\"`"
                    ),
                );
            }
            LitStr::new(&name, function.span())
        }
    }
}

/// The shape of every name that an identity is made of.
pub(super) fn is_name(text: &str, length_max: usize) -> bool {
    (1..=length_max).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

fn keying_is_given(args: &Args, errors: &mut Errors) {
    // A mistyped option is reported already, and may be this one.
    if args.keying.is_none() && errors.is_empty() {
        errors.push(syn::Error::new(
            Span::call_site(),
            "`#[effect]` needs `keying`: write `keying = business_identity` when arguments marked `#[key]` say which effect it is, \
             or `keying = activity_recipe` when only its place in a workflow does",
        ));
    }
}

fn lease_outlives_attempt(args: &Args, errors: &mut Errors) {
    let (Some(lease), Some(timeout)) = (&args.lease, &args.attempt_timeout) else { return };
    if lease.ms <= timeout.ms {
        let message = format!(
            "`lease` ({}) must be longer than `attempt_timeout` ({}): an attempt has to end while its lease holds",
            quoted(lease),
            quoted(timeout)
        );
        errors.at(&lease.literal, message);
    }
}

fn resend_has_a_provider(args: &Args, errors: &mut Errors) {
    let Some(on_unknown) = &args.on_unknown else { return };
    if on_unknown.class == Class::Resend && args.provider.is_none() && errors.is_empty() {
        errors.at(
            &on_unknown.word,
            "`resend` needs a provider: its profile documents for how long it deduplicates on our key; \
             add `provider = Type`, or choose `reconcile(path)`, `hold` or `rerun`",
        );
    }
}

fn backoff_grows(args: &Args, errors: &mut Errors) {
    let (Some(base), Some(max)) = (&args.retry.base, &args.retry.max) else { return };
    if base.ms > max.ms {
        let message = format!(
            "`base` ({}) must not be longer than `max` ({}): it is the first backoff, and `max` the longest",
            quoted(base),
            quoted(max)
        );
        errors.at(&base.literal, message);
    }
}

pub(super) fn keys_fit_keying(keying: Option<Keying>, item: &Item, errors: &mut Errors) {
    let mut keys = item.params.iter().flat_map(|param| &param.key);
    match (keying, keys.next()) {
        (Some(Keying::BusinessIdentity), None) => errors.at(
            &item.function.sig.ident,
            "`keying = business_identity` needs a key: mark the arguments that say which effect it is with `#[key]`, \
             as in `#[key] order_id: OrderId`",
        ),
        (Some(Keying::ActivityRecipe), Some(key)) => errors.at(
            key,
            "`#[key]` belongs to `keying = business_identity`: an activity recipe takes the identity from run, node and ordinal; \
             remove `#[key]` or change `keying`",
        ),
        _ => {}
    }
}

fn quoted(duration: &Millis) -> String {
    format!("{:?}", duration.literal.value())
}
