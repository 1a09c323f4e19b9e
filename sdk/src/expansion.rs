//! What the attribute's output names beside the executor: the future that it returns, and one assertion for each
//! thing that a user writes, so that a mistake is reported once and where it was made.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    EffectError,
    failure::{Argument, AttachedArgument, Found, Polled},
    identity::{Encoder, Fingerprint, Identity},
};

/// One call of an effect, as an annotated function returns it.
///
/// The call is made when the function is called; nothing happens before the first poll, but for the ordinal of an
/// effect with `keying = activity_recipe`, which is taken at the call.
///
/// It is a type of its own and no `impl Future`, so that it borrows nothing of the scope, can be stored in a struct, and
/// a scope that does not fit is one error and not one at every use.
///
/// # Cancel safety
/// Dropping it gives up the wait and nothing else: a body that has started runs on, and its outcome is stored.
#[must_use = "an effect does nothing until it is awaited"]
pub struct Call<T, E>(Pin<Box<dyn Future<Output = crate::Result<T, E>> + Send>>);

impl<T, E> Call<T, E> {
    pub(crate) fn new(call: impl Future<Output = crate::Result<T, E>> + Send + 'static) -> Self {
        Self(Box::pin(call))
    }
}

impl<T, E> Future for Call<T, E> {
    type Output = crate::Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<T, E> fmt::Debug for Call<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

/// One call of an attached effect, as an annotated function with `attached` returns it: it borrows what the arguments
/// borrow, and its body runs where it is awaited.
///
/// The call is made when the function is called; nothing happens before the first poll, but for the ordinal of an effect with
/// `keying = activity_recipe`, which is taken at the call. It has to be polled to its end or dropped: one that is
/// kept and not polled holds its claim, and with it every other caller of the effect.
///
/// # Cancel safety
/// Dropping it drops the body. The attempt is then recorded as *released*, if its body was never polled, and else as *escaped*.
#[must_use = "an effect does nothing until it is awaited"]
pub struct Attached<'a, T, E>(Pin<Box<dyn Future<Output = crate::Result<T, E>> + Send + 'a>>);

impl<'a, T, E> Attached<'a, T, E> {
    #[doc(hidden)]
    pub fn new(call: impl Future<Output = crate::Result<T, E>> + Send + 'a) -> Self {
        Self(Box::pin(call))
    }
}

impl<T, E> Future for Attached<'_, T, E> {
    type Output = crate::Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<T, E> fmt::Debug for Attached<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached").finish_non_exhaustive()
    }
}

/// Asserts what an argument of an attached effect must be.
pub fn attached_argument<T: AttachedArgument>(argument: T) -> T {
    argument
}

/// The `self` of an effect whose body runs on a task of its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the `self` of an effect, which must be `Clone + Send + Sync + 'static`: derive `Clone`, or add `attached` to run the body in the caller's task",
    label = "the body runs on a task of its own, with a clone of `self`"
)]
pub trait Receiver: Clone + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + Sync + 'static> Receiver for T {}

/// Takes the `self` of an effect along. Of two steps, so that what is wrong with its type is said at the type.
#[must_use]
pub fn receiver<T: Receiver>() -> fn(&T) -> T {
    T::clone
}

/// Asserts what an argument must be.
pub fn owned<T: Argument>(argument: T) -> T {
    argument
}

/// An argument of a durable effect: stored with the first claim, so that the effect can be finished without its caller.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as an argument of a `durable` effect",
    label = "an argument of a `durable` effect must implement `Serialize` and `DeserializeOwned`",
    note = "derive both: `#[derive(serde::Serialize, serde::Deserialize)]`; a client or a handle is marked `#[skip]`, and given to the executor with `.resource(…)`"
)]
pub trait DurableArgument: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> DurableArgument for T {}

/// A key in the fingerprint: by its identity, so that a type that cannot be a key is one error and not two.
#[derive(Debug)]
pub struct AsKey<'a, T: ?Sized>(pub &'a T);

impl<T: Identity + ?Sized> Fingerprint for AsKey<'_, T> {
    fn encode_fingerprint(&self, out: &mut Encoder) {
        self.0.encode(out);
    }
}

/// The return type of an effect.
#[diagnostic::on_unimplemented(
    message = "an effect returns `effectual::Result<T, E>`, not `{Self}`",
    label = "write `effectual::Result<{T}, {E}>`",
    note = "`effectual::Result<T, E>` is `Result<T, EffectError<E>>`: it holds the ends of the effect itself beside `E`"
)]
pub trait Returned<T, E> {
    #[doc(hidden)]
    fn returned(self) -> crate::Result<T, E>;
}

#[diagnostic::do_not_recommend]
impl<T, E> Returned<T, E> for Result<T, EffectError<E>> {
    fn returned(self) -> crate::Result<T, E> {
        self
    }
}

/// Asserts the return type of an effect.
///
/// # Errors
/// The one that it is given.
pub fn returned<T, E, R: Returned<T, E>>(returned: R) -> crate::Result<T, E> {
    returned.returned()
}

/// The return type of the look-up in `on_unknown = reconcile(path)`.
#[diagnostic::on_unimplemented(
    message = "a look-up returns `Result<Found<T, E>, E>` with the effect's own types, not `{Self}`",
    label = "this function must return `Result<Found<{T}, {E}>, {E}>`"
)]
pub trait LookedUp<T, E> {
    #[doc(hidden)]
    fn looked_up(self) -> Result<Found<T, E>, E>;
}

#[diagnostic::do_not_recommend]
impl<T, E> LookedUp<T, E> for Result<Found<T, E>, E> {
    fn looked_up(self) -> Self {
        self
    }
}

/// Asserts the return type of a look-up.
///
/// # Errors
/// The one that it is given.
pub fn looked_up<T, E, R: LookedUp<T, E>>(returned: R) -> Result<Found<T, E>, E> {
    returned.looked_up()
}

/// The return type of the function in `poll = path`.
#[diagnostic::on_unimplemented(
    message = "a poll returns `Result<Polled<T, E>, E>` with the effect's own types, not `{Self}`",
    label = "this function must return `Result<Polled<{T}, {E}>, {E}>`"
)]
pub trait PolledReturn<T, E> {
    #[doc(hidden)]
    fn polled(self) -> Result<Polled<T, E>, E>;
}

#[diagnostic::do_not_recommend]
impl<T, E> PolledReturn<T, E> for Result<Polled<T, E>, E> {
    fn polled(self) -> Self {
        self
    }
}

/// Asserts the return type of a poll.
///
/// # Errors
/// The one that it is given.
pub fn polled<T, E, R: PolledReturn<T, E>>(returned: R) -> Result<Polled<T, E>, E> {
    returned.polled()
}

/// The field that `#[failure(…, retry_after = field)]` names.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no delay",
    label = "`retry_after` names a field of type `Duration` or `Option<Duration>`"
)]
pub trait Delay: Copy {
    #[doc(hidden)]
    fn delay(self) -> Option<Duration>;
}

impl Delay for Duration {
    fn delay(self) -> Option<Duration> {
        Some(self)
    }
}

impl Delay for Option<Duration> {
    fn delay(self) -> Option<Duration> {
        self
    }
}
