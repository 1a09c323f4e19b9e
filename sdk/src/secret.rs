//! A part of an outcome that is kept under encryption or not at all.

use std::{cell::Cell, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error as _};

thread_local! {
    /// Whether a value is being encoded for the ledger on this thread, and whether a secret was met in it.
    static ENCODING: Cell<Option<bool>> = const { Cell::new(None) };
}

/// A secret within the value that an effect returns: a token, a password, a card's number.
///
/// The outcome that holds it is stored only sealed by a [`PayloadCodec`](crate::ledger::codec::PayloadCodec). Without one the value
/// is not stored at all: the call that performed the effect gets it, once, and every later call ends with
/// [`Unreadable`](crate::ErrorKind::Unreadable), without performing again.
///
/// Its `Debug` shows nothing, it has no `Display`, and it is serialised for the ledger only: anywhere else that is an error, so that
/// no log and no answer holds it by accident.
///
/// ```
/// use effectual::Secret;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Session {
///     id: String,
///     token: Secret<String>,
/// }
///
/// let session = Session { id: "s-1".into(), token: Secret::new("xyzzy".into()) };
/// assert_eq!(session.token.expose(), "xyzzy");
/// assert_eq!(format!("{:?}", session.token), "Secret(…)");
/// assert!(serde_json::to_string(&session).is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Marks a value as secret.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself: for the place that uses it, and nowhere else.
    #[must_use]
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// The value itself, for good.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<T: Serialize> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if ENCODING.get().is_none() {
            return Err(S::Error::custom("a `Secret` is serialised for the ledger only; use `expose`"));
        }
        ENCODING.set(Some(true));
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

/// Encodes a value for the ledger: what `encode` gives, and whether there was a secret in it.
pub(crate) fn for_ledger<R>(encode: impl FnOnce() -> R) -> (R, bool) {
    struct Before(Option<bool>);
    impl Drop for Before {
        fn drop(&mut self) {
            ENCODING.set(self.0);
        }
    }
    // Put back also where the value's own code panics.
    let _before = Before(ENCODING.replace(Some(false)));
    let encoded = encode();
    (encoded, ENCODING.get() == Some(true))
}
