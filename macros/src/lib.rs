//! The attribute and the derives of `effectual`.

mod args;
mod duration;
mod effect;
mod errors;
mod expand;
mod failure_derive;
mod fallback;
mod identity_derive;
mod item;
mod option;
mod validate;

use identity_derive::Derived;
use proc_macro::TokenStream;

/// Makes an async function an effect.
#[proc_macro_attribute]
pub fn effect(attribute: TokenStream, item: TokenStream) -> TokenStream {
    effect::effect(attribute.into(), item.into()).into()
}

/// Implements `Failure`.
#[proc_macro_derive(Failure, attributes(failure, effectual))]
pub fn derive_failure(input: TokenStream) -> TokenStream {
    failure_derive::derive(input.into()).into()
}

/// Lets values of a type identify an effect, and be compared between two calls.
///
/// A struct with named fields is encoded by its fields, sorted by name; a struct of one unnamed field as that
/// field; other tuple structs as a tuple; an enum by the variant's name and its fields. Every field takes part,
/// and the type's own name does not. `#[key(name = "…")]` on a field or a variant keeps its encoded name when
/// the Rust name changes; `#[effectual(crate = path)]` on the type says where a renamed crate is.
///
/// ```
/// use effectual::Identity;
/// use effectual::identity::{KeyFields, Tenant, business_identity};
///
/// #[derive(Identity)]
/// struct OrderId(u64);
///
/// #[derive(Identity)]
/// struct Refund {
///     order: OrderId,
///     #[key(name = "line")]
///     line_number: Option<u32>,
///     reason: Reason,
/// }
///
/// #[derive(Identity)]
/// enum Reason {
///     Damaged,
///     Other { text: String },
/// }
///
/// let tenant = Tenant::parse("acme")?;
/// let id = |reason| {
///     let refund = Refund { order: OrderId(7), line_number: None, reason };
///     business_identity(&tenant, "refund-order", 1, &KeyFields::new().field("refund", &refund))
/// };
/// assert_eq!(id(Reason::Damaged), id(Reason::Damaged));
/// assert_ne!(id(Reason::Damaged), id(Reason::Other { text: "Damaged".into() }));
/// # Ok::<(), effectual::identity::InvalidId>(())
/// ```
#[proc_macro_derive(Identity, attributes(key, effectual, skip, secret, fingerprint))]
pub fn derive_identity(input: TokenStream) -> TokenStream {
    identity_derive::derive(input.into(), Derived::Identity).into()
}

/// Lets values of a type be compared between two calls of an effect, without letting them identify one.
///
/// For arguments that are no keys and hold what no key may hold, a float say. The encoding and the attributes
/// are those of `#[derive(Identity)]`, which already gives this trait as well.
///
/// ```
/// use effectual::Fingerprint;
/// use effectual::identity::{Arguments, mismatches};
///
/// #[derive(Fingerprint)]
/// struct Parcel {
///     weight_kg: f64,
///     fragile: bool,
/// }
///
/// let asked = |weight_kg| Arguments::new().argument("parcel", &Parcel { weight_kg, fragile: true }).finish();
/// assert!(mismatches(&asked(2.5)?, &asked(2.5)?).is_empty());
/// assert_eq!(mismatches(&asked(2.5)?, &asked(2.6)?), ["parcel"]);
/// # Ok::<(), effectual::identity::FingerprintError>(())
/// ```
#[proc_macro_derive(Fingerprint, attributes(key, effectual, skip, secret, fingerprint))]
pub fn derive_fingerprint(input: TokenStream) -> TokenStream {
    identity_derive::derive(input.into(), Derived::Fingerprint).into()
}
