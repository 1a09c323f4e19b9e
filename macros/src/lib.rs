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

/// Makes an async function an effect: performed under one identity, one claim and one provider key, its outcome
/// stored before it is returned.
///
/// ```
/// use effectual::{EffectContext, EffectScope, Failure, effect};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
/// enum MailError {
///     #[error("the address does not exist")]
///     #[failure(refused)]
///     NoSuchAddress,
/// }
///
/// #[effect(keying = business_identity, on_unknown = hold, attempt_timeout = "10s")]
/// async fn send_receipt(
///     cx: &EffectContext,
///     #[key] order_id: u64,      // the identity: one receipt an order
///     address: String,           // in the fingerprint: another address for this order is an error
///     #[skip] mailer: Mailer,    // a handle: in neither
/// ) -> effectual::Result<MessageId, MailError> {
///     Ok(mailer.send(&address, order_id, cx.idempotency_key()).await?)
/// }
///
/// async fn check_out(scope: &impl EffectScope, mailer: Mailer) -> effectual::Result<MessageId, MailError> {
///     send_receipt(scope, 7, "ada@example.com".into(), mailer).await
/// }
/// # #[derive(Clone)]
/// # struct Mailer;
/// # #[derive(Serialize, Deserialize)]
/// # struct MessageId(u64);
/// # impl Mailer {
/// #     async fn send(&self, _: &str, order_id: u64, _: &str) -> Result<MessageId, MailError> {
/// #         Ok(MessageId(order_id))
/// #     }
/// # }
/// ```
///
/// The function keeps its name, visibility, documentation and arguments, with one difference: where it says
/// `cx: &EffectContext`, which is the body's view, callers pass any `&impl EffectScope` (any `&impl NodeScope` with
/// `keying = activity_recipe`). It returns a future that borrows nothing, unless it is `attached`.
///
/// # Options
///
/// | option | values | without it |
/// | --- | --- | --- |
/// | `keying` | `business_identity`: over the `#[key]` arguments; `activity_recipe`: over run, node and ordinal | required |
/// | `operation` | `"refund-order"`: 1 to 128 of `A-Z a-z 0-9 . _ -`; never change it | the function's name |
/// | `version` | the key schema's version, from 1; raise it with `#[key(since = …)]` or `#[key(until = …)]`, since alone it makes every identity a new one | `1` |
/// | `provider` | a type with `Provider` | none |
/// | `on_unknown` | what an unknown outcome leads to: `resend`, `reconcile(path)`, `transactional`, `hold`, `rerun` | the provider's class, else `hold` |
/// | `poll` | the path of the function that asks by the handle of an accepted effect | the provider's `poll` |
/// | `attempt_timeout` | how long one attempt may take: a duration | the executor's |
/// | `lease` | how long a claim holds without a renewal: a duration, longer than `attempt_timeout` | the executor's |
/// | `wait` | how long a caller waits for another one's attempt: a duration, `"0s"` for not at all | the executor's |
/// | `retry(attempts = …)` | attempts of one call at the most, from 1 | the executor's |
/// | `retry(base = …, max = …)` | the first backoff and the longest: durations | the executor's |
/// | `retry(elapsed = …)` | how long one call goes on starting attempts: a duration | the executor's |
/// | `attached` | no value: the body may borrow, and runs in the caller's task | a task of its own |
/// | `durable` | no value: the arguments are stored, and the effect is finished without its caller | only its caller performs it |
/// | `crate` | the path of the crate, where it is renamed | `::effectual` |
///
/// A duration is text of a whole number and a unit, `ms`, `s`, `m`, `h` or `d`, as in `"250ms"`: above zero but for
/// `wait`, and at most `"365d"`.
///
/// `reconcile(path)` names an `async fn` with the effect's own parameters that asks the provider and returns
/// `Result<Found<T, E>, E>`. `resend` needs a `provider`, whose profile documents for how long it deduplicates.
/// `transactional` is for effects that are SQL in the ledger's own database: the body runs it on `cx.transaction::<L>()`,
/// where `L` is the ledger's type, and it commits together with the outcome.
///
/// # Arguments
///
/// | attribute | the argument is |
/// | --- | --- |
/// | none | in the fingerprint; its type has `Fingerprint` |
/// | `#[key]` | in identity and fingerprint, under its name; its type has `Identity` |
/// | `#[key(name = "order")]` | the same under a pinned name, 1 to 64 of `A-Z a-z 0-9 . _ -`, which outlives a renamed argument |
/// | `#[key(since = 2)]` | in the key from that version of the key schema on, inclusive; before it, an argument like any other |
/// | `#[key(until = 3)]` | in the key before that version, exclusive; from it on, an argument like any other |
/// | `#[fingerprint(json)]` | in the fingerprint, as JSON; its type has `Serialize` |
/// | `#[secret]` | in the fingerprint, through a digest under the executor's `fingerprint_key`, so that what is stored cannot be tried against likely values; alone or with `#[fingerprint(json)]` |
/// | `#[skip]` | in neither: a client, a handle, what may differ on a retry |
///
/// Every argument is owned and `Clone + Send + Sync + 'static`: the body runs on a task of its own, once an attempt, on
/// clones. The outcome has `Serialize` and `DeserializeOwned`, the error `Failure`.
///
/// # Versions of the key
///
/// `since` and `until` name versions from 2 to the effect's `version`; together with each other and with `name` they are one
/// list, `#[key(name = "line", since = 2, until = 4)]`, and `until` is above `since`. Every version keeps a key, and with
/// either of them `version` is at most 64. A call then looks for the effect under every earlier identity, and a first claim
/// records them all, so that programs of both versions find each other's effects.
///
/// ```
/// # use effectual::{EffectContext, Never, effect};
/// #[effect(keying = business_identity, operation = "ship", version = 2)]
/// async fn ship(
///     cx: &EffectContext,
///     #[key] order_id: u64,
///     #[key(since = 2)] line: u32, // was a plain argument in version 1
/// ) -> effectual::Result<u32, Never> {
///     # let _ = (order_id, cx.idempotency_key());
///     Ok(line)
/// }
/// ```
///
/// What was recorded before the new field was an argument at all cannot be told from another effect: such a call ends with
/// `SchemaAmbiguous` and performs nothing. `effectual::identity` has the order in which to deploy.
///
/// # Methods
///
/// An inherent method can be an effect. The body then works on a clone of `self`, which is in neither identity nor
/// fingerprint, as if it were `#[skip]`: two values of the type perform one effect if the keys are the same. A look-up in
/// `reconcile(Self::path)` takes `self` as the effect does.
///
/// ```
/// # use effectual::{EffectContext, Never, effect};
/// #[derive(Clone)]
/// struct Shop {
///     currency: String,
/// }
///
/// impl Shop {
///     #[effect(keying = business_identity, operation = "shop.refund")]
///     async fn refund(&self, cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<String, Never> {
///         let _ = cx.idempotency_key();
///         Ok(format!("{order_id} in {}", self.currency))
///     }
/// }
/// ```
///
/// The method of a trait cannot be one, because the attribute adds a second method beside it: make it an inherent method, and
/// call that from the trait's. Default methods and `async_trait` have the same way out.
///
/// # Generic functions
///
/// Type and constant parameters, `impl Trait` arguments and `where` clauses are taken as they are. There is one operation a
/// function, whatever its parameters: they are in neither identity nor fingerprint, so that `send::<Email>(7)` and
/// `send::<Letter>(7)` are one effect unless a key tells them apart. The provider names none of them. An effect in a
/// generic `impl` has a `self`, or says `Self` somewhere.
///
/// # Effects that borrow
///
/// With `attached` the arguments and `self` may be borrowed, also by `&mut`, and the body runs in the task that awaits the call:
///
/// ```
/// # use effectual::{EffectContext, Never, effect};
/// #[effect(keying = business_identity, attached)]
/// async fn refund(
///     cx: &EffectContext,
///     #[key] order_id: &str,
///     #[skip] log: &mut Vec<String>,
/// ) -> effectual::Result<u32, Never> {
///     log.push(format!("attempt {} of {order_id}", cx.attempt()));
///     Ok(cx.attempt())
/// }
/// ```
///
/// For each attempt, references are copied, `&mut` ones lent again and other arguments cloned. The claim, the retries and the
/// stored outcome are as always, but a caller that drops the call takes the body with it: the attempt is then *released* if its
/// body was never polled, and *escaped* if it was. So do not put such a call into a `select!` or a timeout that is shorter than
/// `attempt_timeout`, and poll it once it is made: a call that is kept and not polled keeps its claim.
///
/// # Effects that the provider accepts and works on
///
/// `poll = path` names an `async fn` that takes the handle, as `&str`, between the context and the effect's own parameters, and
/// returns `Result<Polled<T, E>, E>`. Once the body has stored a handle with `cx.accepted(…)`, nothing is submitted again, and
/// the call asks by that handle until the job ends or its time is over.
///
/// ```
/// # use std::time::Duration;
/// # use effectual::{EffectContext, Never, Polled, effect};
/// #[effect(keying = business_identity, on_unknown = hold, poll = exported)]
/// async fn export(cx: &EffectContext, #[key] month: u32) -> effectual::Result<String, Never> {
///     # let submit = |month: u32, key: &str| format!("job-{month}-{key}");
///     let job = submit(month, cx.idempotency_key());
///     cx.accepted(job, Duration::from_secs(5)).await.map_err(|_| ()).ok();
///     std::future::pending().await
/// }
///
/// async fn exported(cx: &EffectContext, job: &str, month: u32) -> Result<Polled<String, Never>, Never> {
///     let _ = (cx.effect_id(), month);
///     Ok(Polled::Done(format!("{job}.csv")))
/// }
/// ```
///
/// # Effects that are finished without their caller
///
/// With `durable` the arguments that are not skipped are stored with the first claim; they have `Serialize` and `DeserializeOwned`.
/// The executor's recovery then finishes the effect although its caller never comes back, in whichever process knows the
/// operation. What skipped arguments are there, the executor is given at its start with `.resource(…)`, one for each type.
///
/// ```
/// # use effectual::{EffectContext, Never, effect};
/// # #[derive(Clone)]
/// # struct Mailer;
/// #[effect(keying = business_identity, on_unknown = hold, durable)]
/// async fn remind(cx: &EffectContext, #[key] order_id: u64, #[skip] mailer: Mailer) -> effectual::Result<u64, Never> {
///     # let _ = (mailer, cx.idempotency_key());
///     Ok(order_id)
/// }
/// ```
///
/// Such an effect is a free function without type parameters, and not `attached`. The page `effectual::docs::recovery` has the
/// rest.
///
/// # Other attributes
///
/// What stands below `#[effect]` goes to the function that callers see. What stands above it sees the body first:
/// with `#[tracing::instrument(skip_all)]` above, each attempt has a span.
///
/// # What is refused
///
/// Each of these is an error at compile time that says what to write instead: a function that is not `async`, belongs to a
/// trait, takes `&mut self` or borrows without `attached`, is `const`, `unsafe` or `extern`; a first parameter other than
/// `&EffectContext`; an argument that is a pattern, without a name or conditional; a provider that is a type parameter; a
/// return type other than `effectual::Result<T, E>`; `business_identity` without a key, and a key without it; a version of
/// the key that does not exist or has no key; options and attributes that contradict each other.
#[proc_macro_attribute]
pub fn effect(attribute: TokenStream, item: TokenStream) -> TokenStream {
    effect::effect(attribute.into(), item.into()).into()
}

/// Says what each variant of an error means for the effect: implements `Failure`.
///
/// ```
/// use std::time::Duration;
///
/// use effectual::{Failure, Verdict};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
/// enum MailError {
///     #[error("no route")]
///     #[failure(not_performed, retry)]
///     NoRoute,
///     #[error("bounced with {code}")]
///     #[failure(refused)]
///     Bounced { code: u16 },
///     #[error("busy")]
///     #[failure(not_performed, retry, retry_after = delay)]
///     Busy { delay: Option<Duration> },
///     #[error("timed out")]
///     TimedOut,
/// }
///
/// assert_eq!(MailError::NoRoute.verdict(), Verdict::NotPerformed { retry: true });
/// assert_eq!(MailError::TimedOut.verdict(), Verdict::Unknown);
/// let busy = MailError::Busy { delay: Some(Duration::from_secs(2)) };
/// assert_eq!(busy.retry_after(), Some(Duration::from_secs(2)));
/// ```
///
/// | option | the variant means |
/// | --- | --- |
/// | `not_performed` | the provider did not perform it, for certain |
/// | `not_performed, retry` | the same, and another attempt by itself makes sense |
/// | `refused` | the provider's final refusal: stored, and replayed as the same error |
/// | `unknown`, or nothing | nobody can know: the recovery class decides |
/// | `transparent` | what its only field means, which has `Failure` itself |
/// | `retry_after = field` | with `retry` or `unknown`: the field, a `Duration` or an `Option` of one, is the delay that the provider asked for; by name, or by index in a tuple |
///
/// On a struct the attribute goes on the struct. The error is stored, so it must own its data and have `Serialize` and
/// `Deserialize`. `#[effectual(crate = path)]` on the type says where a renamed crate is.
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
