//! What `#[effect(…)]` says: the options, read but not yet judged together.

use proc_macro2::{Ident, TokenStream};
use syn::parse::{ParseStream, Parser};
use syn::{LitInt, LitStr, Path, Type, parenthesized, parse_quote};

use crate::duration::{self, Millis, Zero};
use crate::errors::Errors;
use crate::option::{Grammar, assigned, chosen, flag};

const EFFECT: Grammar = Grammar {
    owner: "`#[effect]`",
    names: &[
        "keying",
        "operation",
        "version",
        "provider",
        "on_unknown",
        "poll",
        "attempt_timeout",
        "lease",
        "wait",
        "retry",
        "attached",
        "durable",
        "crate",
    ],
};

const RETRY: Grammar = Grammar { owner: "`retry`", names: &["attempts", "base", "max", "elapsed"] };

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keying {
    BusinessIdentity,
    ActivityRecipe,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Resend,
    Reconcile,
    Transactional,
    Hold,
    Rerun,
}

pub(crate) struct OnUnknown {
    pub(crate) word: Ident,
    pub(crate) class: Class,
    /// The look-up of `reconcile(path)`.
    pub(crate) look_up: Option<Path>,
}

/// The options of `retry(…)`.
#[derive(Default)]
pub(crate) struct Retry {
    pub(crate) attempts: Option<u32>,
    pub(crate) base: Option<Millis>,
    pub(crate) max: Option<Millis>,
    pub(crate) elapsed: Option<Millis>,
}

pub(crate) struct Args {
    pub(crate) keying: Option<Keying>,
    pub(crate) operation: Option<LitStr>,
    pub(crate) version: Option<u32>,
    pub(crate) provider: Option<Type>,
    pub(crate) on_unknown: Option<OnUnknown>,
    /// The function that asks by the handle of an accepted effect.
    pub(crate) poll: Option<Path>,
    pub(crate) attempt_timeout: Option<Millis>,
    pub(crate) lease: Option<Millis>,
    pub(crate) wait: Option<Millis>,
    pub(crate) retry: Retry,
    /// The body borrows, and runs in the caller's task.
    pub(crate) attached: bool,
    /// The arguments are stored with the first claim: the word, for messages.
    pub(crate) durable: Option<Ident>,
    /// Where the crate is: `::effectual` unless `crate = path` says otherwise.
    pub(crate) krate: Path,
}

impl Args {
    pub(crate) fn read(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::none_given();
        let read = |input: ParseStream<'_>| {
            EFFECT.read(input, errors, |name, input, errors| args.read_option(name, input, errors));
            Ok(())
        };
        if let Err(error) = read.parse2(tokens) {
            errors.push(error);
        }
        args
    }

    fn none_given() -> Self {
        Self {
            keying: None,
            operation: None,
            version: None,
            provider: None,
            on_unknown: None,
            poll: None,
            attempt_timeout: None,
            lease: None,
            wait: None,
            retry: Retry::default(),
            attached: false,
            durable: None,
            krate: parse_quote!(::effectual),
        }
    }

    fn read_option(&mut self, name: &Ident, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        match name.to_string().as_str() {
            "keying" => {
                let choices = [
                    ("business_identity", Keying::BusinessIdentity),
                    ("activity_recipe", Keying::ActivityRecipe),
                ];
                self.keying = Some(chosen(name, &choices, input)?.1);
            }
            "operation" => self.operation = Some(assigned(name, "\"refund-order\"", input)?),
            "version" => self.version = Some(from_one(name, input)?),
            "provider" => self.provider = Some(assigned(name, "Type", input)?),
            "on_unknown" => self.on_unknown = Some(on_unknown(name, input)?),
            "poll" => self.poll = Some(assigned(name, "path::to::poll", input)?),
            "attempt_timeout" => {
                self.attempt_timeout = Some(duration::read(name, "10s", Zero::Refused, input)?)
            }
            "lease" => self.lease = Some(duration::read(name, "60s", Zero::Refused, input)?),
            "wait" => self.wait = Some(duration::read(name, "5s", Zero::Allowed, input)?),
            "retry" => self.retry.read_options(name, input, errors)?,
            "attached" => self.attached = flag(name, input)?,
            "durable" => self.durable = flag(name, input)?.then(|| name.clone()),
            "crate" => self.krate = assigned(name, "::path::to::effectual", input)?,
            _ => {}
        }
        Ok(())
    }
}

impl Retry {
    fn read_options(&mut self, name: &Ident, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        const FORM: &str = "retry(attempts = 5, base = \"200ms\", max = \"10s\", elapsed = \"60s\")";
        if !input.peek(syn::token::Paren) {
            return Err(syn::Error::new(
                name.span(),
                format!("write `{FORM}`, with the options that you need"),
            ));
        }
        let content;
        parenthesized!(content in input);
        if content.is_empty() {
            return Err(syn::Error::new(
                name.span(),
                format!("`retry` says nothing: write at least one of `{FORM}`"),
            ));
        }
        RETRY.read(&content, errors, |name, input, _| {
            match name.to_string().as_str() {
                "attempts" => self.attempts = Some(from_one(name, input)?),
                "base" => self.base = Some(duration::read(name, "200ms", Zero::Refused, input)?),
                "max" => self.max = Some(duration::read(name, "10s", Zero::Refused, input)?),
                "elapsed" => self.elapsed = Some(duration::read(name, "60s", Zero::Refused, input)?),
                _ => {}
            }
            Ok(())
        });
        Ok(())
    }
}

pub(crate) fn from_one(name: &Ident, input: ParseStream<'_>) -> syn::Result<u32> {
    let literal: LitInt = assigned(name, "1", input)?;
    match literal.base10_parse() {
        Ok(number) if number >= 1 && literal.suffix().is_empty() => Ok(number),
        _ => Err(syn::Error::new(
            literal.span(),
            format!("`{name}` is a whole number without a suffix, from 1 to {}", u32::MAX),
        )),
    }
}

fn on_unknown(name: &Ident, input: ParseStream<'_>) -> syn::Result<OnUnknown> {
    const FORM: &str = "on_unknown = reconcile(path::to::look_up)";
    let choices = [
        ("resend", Class::Resend),
        ("reconcile", Class::Reconcile),
        ("transactional", Class::Transactional),
        ("hold", Class::Hold),
        ("rerun", Class::Rerun),
    ];
    let (word, class) = chosen(name, &choices, input)?;
    let look_up = match class {
        Class::Reconcile => {
            let missing = || {
                let message =
                    format!("`reconcile` names the function that asks the provider: write `{FORM}`");
                syn::Error::new(word.span(), message)
            };
            if !input.peek(syn::token::Paren) {
                return Err(missing());
            }
            let content;
            parenthesized!(content in input);
            if content.is_empty() {
                return Err(missing());
            }
            let path = content.parse()?;
            if !content.is_empty() {
                return Err(content.error(format!("expected one path: write `{FORM}`")));
            }
            Some(path)
        }
        _ => None,
    };
    Ok(OnUnknown { word, class, look_up })
}
