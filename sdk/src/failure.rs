//! How an error says what became of an attempt, and the ways to say it in a body.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

use crate::error::EffectError;

/// What an attempt's end means for the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The provider did not perform it, for certain.
    NotPerformed {
        /// Whether another attempt by itself makes sense: a refused connection yes, a rejected credential no.
        retry: bool,
    },
    /// The provider's final refusal: stored, and replayed as the same typed error.
    Refused,
    /// Nobody can know yet: the recovery class decides. Never reported as failed.
    Unknown,
}

/// The error type of an effect: says its verdict, and can be stored so that a refusal replays as the same value.
///
/// Derive it with `#[derive(Failure)]`: a variant that says nothing is [`Verdict::Unknown`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what an error means for the effect",
    label = "an effect's error type must implement `Failure`",
    note = "derive it: `#[derive(Debug, thiserror::Error, Serialize, Deserialize, effectual::Failure)]`, and mark each variant `#[failure(not_performed)]`, `#[failure(refused)]` or `#[failure(unknown)]`",
    note = "the supertraits are `std::error::Error + Serialize + DeserializeOwned + Send + Sync + 'static`"
)]
pub trait Failure: std::error::Error + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What this error means for the effect.
    fn verdict(&self) -> Verdict;

    /// How long the provider asked us to wait before the next attempt.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

/// A value that an effect can return: stored before it is returned, and returned as it was stored.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as an effect's outcome",
    label = "an outcome must implement `Serialize` and `DeserializeOwned`, and be `Send + Sync + 'static`",
    note = "derive both: `#[derive(serde::Serialize, serde::Deserialize)]`; return owned data, not references"
)]
pub trait Outcome: Serialize + DeserializeOwned + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Outcome for T {}

/// An argument of an effect: cloned for each attempt, because the body runs on a task of its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an effect",
    label = "an argument must be `Clone + Send + Sync + 'static`",
    note = "the body runs on a task of its own and may run again: own the data, and put a handle behind `std::sync::Arc`"
)]
pub trait Argument: Clone + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + Sync + 'static> Argument for T {}

/// An argument of an attached effect: it may borrow, and is cloned for each attempt. A `&mut` argument is lent instead.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an attached effect, which must be `Clone + Send + Sync`, or borrowed",
    label = "take `&{Self}`, or derive `Clone`",
    note = "the body may run again: take a reference, derive `Clone`, or put a handle behind `std::sync::Arc`"
)]
pub trait AttachedArgument: Clone + Send + Sync {}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + Sync> AttachedArgument for T {}

/// What a look-up at the provider found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found<T, E> {
    /// It was performed, with this outcome.
    Done(T),
    /// The provider refused it, finally.
    Refused(E),
    /// The provider has not performed it. Believed only once no attempt in doubt can still act.
    Absent,
    /// The provider cannot tell.
    Unknown,
}

/// What asking by the handle of an accepted effect came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Polled<T, E> {
    /// The provider still works on it.
    Running {
        /// When it is worth asking again, from now.
        poll_after: Duration,
    },
    /// It was performed, with this outcome.
    Done(T),
    /// The job failed, finally: stored as a refusal, and replayed as the same error.
    Failed(E),
    /// The provider does not know the handle: nobody can know what became of the effect. It stays escaped, and nothing is
    /// submitted again.
    UnknownHandle,
    /// The provider cannot tell at present; it is asked again later.
    Unknown,
    /// This provider is not asked by handles: the default answer of [`Provider::poll`](crate::Provider::poll).
    Unsupported,
}

/// Says in a body what a foreign error means: `client.ping().await.not_performed()?`.
///
/// Each method converts the error into the effect's own error type through `E: From<X>`.
pub trait OrFail<T, X>: Sized {
    /// The provider did not perform it. Retried by itself only where the error's own verdict says so.
    ///
    /// # Errors
    /// The converted error, with the verdict *not performed*.
    fn not_performed<E: Failure + From<X>>(self) -> crate::Result<T, E>;

    /// The provider refused it, finally: the error is stored and replayed.
    ///
    /// # Errors
    /// The converted error, with the verdict *refused*.
    fn refused<E: Failure + From<X>>(self) -> crate::Result<T, E>;

    /// Nobody can know whether the provider performed it.
    ///
    /// # Errors
    /// The converted error, with the verdict *unknown*.
    fn unknown<E: Failure + From<X>>(self) -> crate::Result<T, E>;

    /// Converts the error and keeps its own verdict.
    ///
    /// # Errors
    /// The converted error, with the verdict that it says itself.
    fn or_fail<E: Failure + From<X>>(self) -> crate::Result<T, E>;
}

impl<T, X> OrFail<T, X> for std::result::Result<T, X> {
    fn not_performed<E: Failure + From<X>>(self) -> crate::Result<T, E> {
        self.map_err(|error| {
            let error = E::from(error);
            let retry = error.verdict() == Verdict::NotPerformed { retry: true };
            EffectError::from_body(error, Verdict::NotPerformed { retry })
        })
    }

    fn refused<E: Failure + From<X>>(self) -> crate::Result<T, E> {
        self.map_err(|error| EffectError::from_body(E::from(error), Verdict::Refused))
    }

    fn unknown<E: Failure + From<X>>(self) -> crate::Result<T, E> {
        self.map_err(|error| EffectError::from_body(E::from(error), Verdict::Unknown))
    }

    fn or_fail<E: Failure + From<X>>(self) -> crate::Result<T, E> {
        self.map_err(|error| EffectError::from(E::from(error)))
    }
}

/// Takes the result of another effect in a body: `charge(cx, order).await.nested()?`.
pub trait Nested<T, X>: Sized {
    /// Keeps the inner effect's verdict: its escaped and in-flight ends are unknown here too.
    ///
    /// # Errors
    /// The inner error, converted; an inner end without an error value becomes the same end of this effect.
    fn nested<E: Failure + From<X>>(self) -> crate::Result<T, E>;
}

impl<T, X> Nested<T, X> for crate::Result<T, X> {
    fn nested<E: Failure + From<X>>(self) -> crate::Result<T, E> {
        self.map_err(EffectError::nest)
    }
}

/// The error of an effect that cannot fail by itself, such as one whose provider never refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, thiserror::Error)]
#[error("this error has no value")]
pub enum Never {}

impl Failure for Never {
    fn verdict(&self) -> Verdict {
        match *self {}
    }
}
