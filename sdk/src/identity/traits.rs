//! What may be part of an identity, and what may be compared between two calls.

use super::canonical::{Encoder, Tag};

/// A type whose values may identify an effect.
///
/// Implemented for integers, `bool`, `char`, text, bytes, [`Uuid`](uuid::Uuid), `Option`, sequences, tuples of
/// up to 8, `BTreeMap`, `BTreeSet` and [`Tenant`](crate::Tenant); your own types get it by
/// `#[derive(Identity)]`. Left out on purpose, because they make each retry another effect or one value in two
/// encodings: floats, `HashMap` and `HashSet`, `Instant` and `SystemTime`, and the coordinates of a run
/// ([`RunId`](crate::RunId), [`NodeId`](crate::NodeId), [`InvocationId`](crate::InvocationId)).
///
/// # Implementing it by hand
///
/// Pass the encoder on to one value of a type that has the trait, and to no second one; for several values use
/// a tuple. Two values that are the same for the business must encode alike on every machine and for as long as
/// their effects are retained.
///
/// ```
/// use effectual::identity::Encoder;
/// use effectual::Identity;
///
/// struct Iban(String);
///
/// impl Identity for Iban {
///     fn encode(&self, out: &mut Encoder) {
///         // Written with and without spaces it is one account, so it is one identity.
///         self.0.replace(' ', "").encode(out);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an effect's identity",
    label = "`Identity` is not implemented for `{Self}`",
    note = "an identity must be the same value on every retry, in every process",
    note = "instead of a float: an integer of the smallest unit (cents), or a decimal as text",
    note = "instead of `HashMap` or `HashSet`, whose order differs in each process: `BTreeMap` or `BTreeSet`",
    note = "instead of `Instant` or `SystemTime`: a business date as text, or nothing; a time makes each retry another effect",
    note = "instead of a run, node or invocation id: nothing; `keying = activity_recipe` is for effects of a run",
    note = "a type of your own: `#[derive(Identity)]`; an argument that is not a key: see `Fingerprint`"
)]
pub trait Identity {
    /// Writes this value's canonical encoding.
    fn encode(&self, out: &mut Encoder);

    /// Writes a sequence of such values. Bytes are a sequence of `u8` with an encoding of their own.
    #[doc(hidden)]
    fn encode_sequence(items: &[Self], out: &mut Encoder)
    where
        Self: Sized,
    {
        let list = out.open(Tag::List);
        for item in items {
            item.encode(out);
        }
        out.close(list);
    }
}

/// A type whose values can be compared between two calls of one effect.
///
/// An argument that is not part of the identity enters the fingerprint: another amount for the same refund is
/// an error, not a replay. Every type with [`Identity`] has it, with the same encoding, and so have `f32` and
/// `f64` (by their bits, all NaNs being one value), [`Duration`](std::time::Duration) and the identifiers of
/// runs, nodes, invocations and effects. Your own types get it by `#[derive(Identity)]` or, where they may not
/// be a key, `#[derive(Fingerprint)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be compared between two calls of an effect",
    label = "`Fingerprint` is not implemented for `{Self}`",
    note = "every argument that is not skipped must be equal when the effect is called again",
    note = "a type of your own: `#[derive(Identity)]`, or `#[derive(Fingerprint)]` where it is never a key",
    note = "an argument of any type that serialises: `#[fingerprint(json)]` in front of it",
    note = "a client, a handle, a time, or what may differ on a retry: `#[skip]` in front of the argument",
    note = "instead of `HashMap` or `HashSet`, whose order differs in each process: `BTreeMap` or `BTreeSet`"
)]
pub trait Fingerprint {
    /// Writes this value's canonical encoding.
    fn encode_fingerprint(&self, out: &mut Encoder);

    /// Writes a sequence of such values. Bytes are a sequence of `u8` with an encoding of their own.
    #[doc(hidden)]
    fn encode_fingerprint_sequence(items: &[Self], out: &mut Encoder)
    where
        Self: Sized,
    {
        let list = out.open(Tag::List);
        for item in items {
            item.encode_fingerprint(out);
        }
        out.close(list);
    }
}
