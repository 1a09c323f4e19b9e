//! The signature as it is written, taken apart but not yet judged.

use syn::visit::{self, Visit};
use syn::{
    Attribute, FnArg, GenericArgument, Ident, ItemFn, Meta, Pat, PatType, Path, PathArguments, Receiver,
    ReceiverKind, ReturnType, Type, TypePath,
};

use crate::args::from_one;
use crate::errors::Errors;
use crate::option::{Grammar, assigned};

const KEY: Grammar = Grammar { owner: "`#[key]`", names: &["name", "since", "until"] };
const FINGERPRINT: Grammar = Grammar { owner: "`#[fingerprint]`", names: &["json"] };

/// The attributes that a parameter may carry, for messages.
pub(crate) const PARAMETER_ATTRIBUTES: &[&str] =
    &["#[key]", "#[key(name = \"…\")]", "#[skip]", "#[secret]", "#[fingerprint(json)]"];

/// One typed parameter.
pub(crate) struct Param {
    pub(crate) pat: Pat,
    pub(crate) ty: Type,
    pub(crate) key: Vec<Attribute>,
    pub(crate) key_name: Option<syn::LitStr>,
    /// The first version of the key schema that has this key, and the first that has it no more.
    pub(crate) key_since: Option<(Ident, u32)>,
    pub(crate) key_until: Option<(Ident, u32)>,
    pub(crate) skip: Vec<Attribute>,
    pub(crate) secret: Vec<Attribute>,
    pub(crate) fingerprint: Vec<Attribute>,
    /// Lint levels, which belong to the body's parameter.
    pub(crate) lints: Vec<Attribute>,
    pub(crate) others: Vec<Attribute>,
}

/// The function under the attribute; `function` has lost the parameter attributes that only `#[effect]` knows.
pub(crate) struct Item {
    pub(crate) function: ItemFn,
    pub(crate) params: Vec<Param>,
}

impl Item {
    pub(crate) fn read(mut function: ItemFn, errors: &mut Errors) -> Self {
        let params = function
            .sig
            .inputs
            .iter_mut()
            .filter_map(|input| match input {
                FnArg::Typed(typed) => Some(Param::read(typed, errors)),
                FnArg::Receiver(_) => None,
            })
            .collect();
        Self { function, params }
    }

    /// Whether the body must be a function of the same `impl`: it has a `self`, or says `Self`.
    pub(crate) fn is_of_a_type(&self) -> bool {
        self.function.sig.receiver().is_some() || self.self_type().is_some()
    }

    /// The first path that starts with `Self`, in the signature or the body.
    pub(crate) fn self_type(&self) -> Option<Path> {
        struct FirstSelf(Option<Path>);
        impl<'ast> Visit<'ast> for FirstSelf {
            fn visit_path(&mut self, path: &'ast Path) {
                if self.0.is_none() && path.segments.first().is_some_and(|segment| segment.ident == "Self") {
                    self.0 = Some(path.clone());
                }
                visit::visit_path(self, path);
            }
            // An item inside the body has a `Self` of its own.
            fn visit_item(&mut self, _: &'ast syn::Item) {}
        }
        let mut found = FirstSelf(None);
        found.visit_signature(&self.function.sig);
        found.visit_block(&self.function.block);
        found.0
    }
}

impl Param {
    fn read(typed: &mut PatType, errors: &mut Errors) -> Self {
        let mut param = Self {
            pat: (*typed.pat).clone(),
            ty: (*typed.ty).clone(),
            key: Vec::new(),
            key_name: None,
            key_since: None,
            key_until: None,
            skip: Vec::new(),
            secret: Vec::new(),
            fingerprint: Vec::new(),
            lints: Vec::new(),
            others: Vec::new(),
        };
        for attr in std::mem::take(&mut typed.attrs) {
            param.take(attr, errors);
        }
        typed.attrs.extend(param.lints.iter().cloned());
        param
    }

    fn take(&mut self, attr: Attribute, errors: &mut Errors) {
        let name = attr.path().get_ident().map(Ident::to_string).unwrap_or_default();
        match name.as_str() {
            "key" => {
                if !matches!(attr.meta, Meta::Path(_)) {
                    KEY.read_attribute(&attr, errors, |name, input, _| {
                        match name.to_string().as_str() {
                            "since" => self.key_since = Some((name.clone(), from_one(name, input)?)),
                            "until" => self.key_until = Some((name.clone(), from_one(name, input)?)),
                            _ => self.key_name = Some(assigned(name, "\"order_id\"", input)?),
                        }
                        Ok(())
                    });
                }
                self.key.push(attr);
            }
            "skip" | "secret" => {
                if let Err(error) = attr.meta.require_path_only() {
                    errors.push(syn::Error::new(error.span(), format!("`#[{name}]` takes no options")));
                }
                if name == "skip" { self.skip.push(attr) } else { self.secret.push(attr) }
            }
            "fingerprint" => {
                FINGERPRINT.read_attribute(&attr, errors, |_, _, _| Ok(()));
                self.fingerprint.push(attr);
            }
            "allow" | "expect" | "warn" | "deny" | "forbid" => self.lints.push(attr),
            _ => self.others.push(attr),
        }
    }

    /// The parameter's name, where it has one: a pattern or `_` has none.
    pub(crate) fn ident(&self) -> Option<&Ident> {
        match &self.pat {
            Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => Some(&pat.ident),
            _ => None,
        }
    }

    /// The context, under any wrapping: `&EffectContext`, `EffectContext`, `&mut EffectContext`, `&impl EffectScope`.
    pub(crate) fn is_context_like(&self) -> bool {
        struct Named(bool);
        impl<'ast> Visit<'ast> for Named {
            fn visit_path(&mut self, path: &'ast Path) {
                let last = path.segments.last().map(|segment| segment.ident.to_string());
                const NAMES: [&str; 6] =
                    ["EffectContext", "EffectScope", "NodeScope", "TenantScope", "RunScope", "NodeExecution"];
                self.0 |= last.is_some_and(|last| NAMES.contains(&last.as_str()));
                visit::visit_path(self, path);
            }
        }
        let mut named = Named(false);
        named.visit_type(&self.ty);
        named.0
    }
}

/// How a method takes `self`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SelfForm {
    Shared,
    Mutable,
    Owned,
}

impl SelfForm {
    pub(crate) fn of(receiver: &Receiver) -> Self {
        let mutable = match &receiver.kind {
            ReceiverKind::Reference(_, _, mutability) => mutability.is_some(),
            ReceiverKind::Typed(_, ty) => match bare(ty) {
                Type::Reference(reference) => reference.mutability.is_some(),
                _ => return Self::Owned,
            },
            _ => return Self::Owned,
        };
        if mutable { Self::Mutable } else { Self::Shared }
    }
}

/// The type inside the invisible groups that `macro_rules` leaves, and inside parentheses.
pub(crate) fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        ty => ty,
    }
}

/// The last segment of a type that is a path.
pub(crate) fn last_segment(ty: &Type) -> Option<&syn::PathSegment> {
    match bare(ty) {
        Type::Path(TypePath { path, .. }) => path.segments.last(),
        _ => None,
    }
}

/// The type itself, and `T` and `E`, of `…Result<T, E>` or `…Result<T, …EffectError<E>>`.
pub(crate) fn result_arguments(output: &ReturnType) -> Option<(&Type, &Type, &Type)> {
    let ReturnType::Type(_, ty) = output else { return None };
    let segment = last_segment(ty).filter(|segment| segment.ident == "Result")?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    let mut types = arguments.args.iter().map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    match (types.next(), types.next(), types.next()) {
        (Some(Some(value)), Some(Some(error)), None) => {
            Some((ty, value, inside("EffectError", error).unwrap_or(error)))
        }
        _ => None,
    }
}

/// The first type argument of a path that ends in `name`.
fn inside<'a>(name: &str, ty: &'a Type) -> Option<&'a Type> {
    let segment = last_segment(ty).filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// `Pin<Box<dyn Future<…>>>`: what `async_trait` leaves of an async method.
pub(crate) fn is_boxed_future(output: &ReturnType) -> bool {
    let ReturnType::Type(_, ty) = output else { return false };
    inside("Pin", ty)
        .and_then(|pinned| inside("Box", pinned))
        .is_some_and(|boxed| matches!(bare(boxed), Type::TraitObject(_)))
}
