//! Judges options and signature: one function a rule, every mistake reported.

mod arguments;
mod durable;
mod options;
mod signature;
mod versions;

use syn::{Attribute, Block, Ident, LitStr, Pat, Receiver, Signature, Type, Visibility};

use crate::args::{Args, Keying};
use crate::errors::Errors;
use crate::item::{Item, result_arguments};

/// How an argument enters the effect's identity and fingerprint.
pub(crate) enum Role {
    /// In the key schema's versions from the first number on and before the second.
    Key(u32, Option<u32>),
    Plain,
    Json,
    Secret,
    SecretJson,
    Skip,
}

/// One argument that is not the context.
pub(crate) struct Argument {
    pub(crate) ident: Ident,
    /// What the wrapper calls it, so that no name of the user's meets one of ours, nor a lint on names.
    pub(crate) local: Ident,
    /// The pattern of the body's parameter: the name, perhaps `mut`.
    pub(crate) pat: Pat,
    pub(crate) ty: Type,
    /// The type with `_` for each `impl Trait`, for where that cannot be said.
    pub(crate) named_ty: Type,
    /// Taken by `&mut`: lent to each attempt, and not cloned.
    pub(crate) lent: bool,
    /// The name in identity and fingerprint.
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) lints: Vec<Attribute>,
}

/// Everything that the expansion needs, known to be in order.
pub(crate) struct Effect {
    pub(crate) args: Args,
    pub(crate) keying: Keying,
    pub(crate) operation: LitStr,
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) block: Block,
    pub(crate) context: Ident,
    pub(crate) context_ty: Type,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) receiver: Option<Receiver>,
    /// The body is a sibling in the same `impl`, and not a function inside the wrapper.
    pub(crate) is_of_a_type: bool,
    pub(crate) return_ty: Type,
    pub(crate) value_ty: Type,
    pub(crate) error_ty: Type,
}

/// Judges everything; `None` when `errors` says why not.
pub(crate) fn check(args: Args, item: &Item, errors: &mut Errors) -> Option<Effect> {
    options::check(&args, errors);
    durable::check(&args, item, errors);
    if signature::check(&args, item, errors) {
        arguments::check(&args, item, errors);
        options::keys_fit_keying(args.keying, item, errors);
        versions::check(&args, item, errors);
    }
    let function = &item.function;
    let operation = options::operation(&args, &function.sig.ident, errors);
    if !errors.is_empty() {
        return None;
    }
    let (return_ty, value_ty, error_ty) = result_arguments(&function.sig.output)?;
    let (context, rest) = item.params.split_first()?;
    Some(Effect {
        keying: args.keying?,
        operation,
        attrs: function.attrs.clone(),
        vis: function.vis.clone(),
        sig: function.sig.clone(),
        block: (*function.block).clone(),
        context: context.ident()?.clone(),
        context_ty: context.ty.clone(),
        receiver: function.sig.receiver().cloned(),
        is_of_a_type: item.is_of_a_type(),
        arguments: rest.iter().enumerate().map(arguments::read).collect::<Option<_>>()?,
        return_ty: return_ty.clone(),
        value_ty: value_ty.clone(),
        error_ty: error_ty.clone(),
        args,
    })
}
