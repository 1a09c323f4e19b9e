//! Durable submission: the arguments of an effect to storage and back, and what a recovery performs it with.

use std::{
    any::{Any, TypeId, type_name},
    collections::{BTreeMap, HashMap},
    fmt,
};

use serde_json::value::RawValue;

use super::work::Work;
use crate::{expansion::DurableArgument, ledger::Payload};

/// The encoding of arguments: a JSON object of them by name.
const CODEC: &str = "json/1";

/// The one place through which arguments go to storage.
fn to_storage(arguments: &BTreeMap<&'static str, Box<RawValue>>) -> Option<Payload> {
    let bytes = serde_json::to_vec(arguments).ok()?;
    Some(Payload { codec: CODEC.into(), bytes })
}

/// The one place through which arguments come from storage.
fn from_storage(payload: &Payload) -> Option<BTreeMap<String, Box<RawValue>>> {
    if payload.codec != CODEC {
        return None;
    }
    serde_json::from_slice(&payload.bytes).ok()
}

/// The arguments of one call on their way to the ledger. Not part of the public interface.
#[doc(hidden)]
#[derive(Default)]
pub struct Input {
    arguments: BTreeMap<&'static str, Box<RawValue>>,
    refused: Option<&'static str>,
}

impl Input {
    /// No argument yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With this argument.
    #[must_use]
    pub fn argument<T: DurableArgument>(mut self, name: &'static str, value: &T) -> Self {
        match serde_json::value::to_raw_value(value) {
            Ok(value) => drop(self.arguments.insert(name, value)),
            Err(_) => self.refused = Some(name),
        }
        self
    }

    /// As the ledger keeps them, or which argument cannot be kept.
    pub(crate) fn finish(self) -> Result<Payload, String> {
        let refused = |name: &str| {
            format!(
                "the argument `{name}` cannot be encoded, and a `durable` effect stores it before it starts"
            )
        };
        match self.refused {
            Some(name) => Err(refused(name)),
            None => to_storage(&self.arguments).ok_or_else(|| refused("?")),
        }
    }
}

/// Why stored arguments do not give a call. Not part of the public interface.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable(pub(crate) &'static str);

/// What was stored of a call, and what the executor was given at its start. Not part of the public interface.
#[doc(hidden)]
pub struct Stored<'a> {
    arguments: BTreeMap<String, Box<RawValue>>,
    resources: &'a Resources,
}

impl<'a> Stored<'a> {
    pub(crate) fn read(payload: &Payload, resources: &'a Resources) -> Result<Self, Unreadable> {
        let arguments = from_storage(payload).ok_or(Unreadable("*"))?;
        Ok(Self { arguments, resources })
    }

    /// One argument; where an older binary did not have it yet, whatever its type makes of `null`.
    ///
    /// # Errors
    /// Which argument it is that does not decode.
    pub fn argument<T: DurableArgument>(&self, name: &'static str) -> Result<T, Unreadable> {
        let text = self.arguments.get(name).map_or("null", |value| value.get());
        serde_json::from_str(text).map_err(|_| Unreadable(name))
    }

    /// What stands in for a skipped argument.
    ///
    /// # Errors
    /// Which argument has no resource.
    pub fn resource<T: Clone + Send + Sync + 'static>(&self, name: &'static str) -> Result<T, Unreadable> {
        self.resources.get().ok_or(Unreadable(name))
    }
}

/// What the executor was given for skipped arguments, by type.
#[derive(Default)]
pub(crate) struct Resources(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Resources {
    pub(crate) fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Box::new(value));
    }

    fn get<T: Clone + 'static>(&self) -> Option<T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref().cloned()
    }

    /// The first of them that was not given.
    pub(crate) fn missing(&self, needed: &'static [ResourceRef]) -> Option<&'static ResourceRef> {
        needed.iter().find(|resource| !self.0.contains_key(&(resource.type_id)()))
    }
}

/// A skipped argument of a durable effect. Not part of the public interface.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct ResourceRef {
    argument: &'static str,
    type_id: fn() -> TypeId,
    type_name: fn() -> &'static str,
}

impl ResourceRef {
    /// The argument of this name and type.
    #[must_use]
    pub const fn of<T: 'static>(argument: &'static str) -> Self {
        Self { argument, type_id: TypeId::of::<T>, type_name: type_name::<T> }
    }
}

impl fmt::Display for ResourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, a `{}`", self.argument, (self.type_name)())
    }
}

/// A durable effect as the attribute submits it: how a recovery gets at its functions. Not part of the public interface.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Recoverable {
    pub(crate) operation: &'static str,
    pub(crate) resources: &'static [ResourceRef],
    pub(crate) work: fn(&Stored<'_>) -> Result<Work, Unreadable>,
}

impl Recoverable {
    /// The operation of this name.
    #[must_use]
    pub const fn new(
        operation: &'static str,
        resources: &'static [ResourceRef],
        work: fn(&Stored<'_>) -> Result<Work, Unreadable>,
    ) -> Self {
        Self { operation, resources, work }
    }

    /// The one with this operation's name, if it is linked in.
    pub(crate) fn find(operation: &str) -> Option<&'static Self> {
        inventory::iter::<Self>().find(|known| known.operation == operation)
    }
}

inventory::collect!(Recoverable);

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(input: Input) -> Payload {
        input.finish().expect("it encodes")
    }

    #[test]
    fn arguments_come_back_as_they_were() {
        let payload =
            stored(Input::new().argument("order", &"o-1".to_owned()).argument("amount", &u128::MAX));
        let resources = Resources::default();
        let read = Stored::read(&payload, &resources).expect("it reads");
        assert_eq!(read.argument("order"), Ok("o-1".to_owned()));
        assert_eq!(read.argument("amount"), Ok(u128::MAX));
        assert_eq!(read.argument::<Option<u8>>("new"), Ok(None));
        assert_eq!(read.argument::<u8>("new"), Err(Unreadable("new")));
        assert_eq!(read.argument::<u8>("order"), Err(Unreadable("order")));
    }

    #[test]
    fn another_encoding_is_not_guessed_at() {
        let payload = Payload { codec: "json/2".into(), ..stored(Input::new()) };
        assert!(Stored::read(&payload, &Resources::default()).is_err());
    }

    #[test]
    fn an_argument_that_cannot_be_encoded_is_named() {
        #[derive(serde::Deserialize)]
        struct Never;
        impl serde::Serialize for Never {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("canary"))
            }
        }
        let refused = Input::new().argument("handle", &Never).finish().expect_err("refused");
        assert!(refused.contains("`handle`") && !refused.contains("canary"), "{refused}");
    }
}
