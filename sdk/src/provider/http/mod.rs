//! The HTTP adapter: sends an effect's one request, with its key where the provider's profile says.
//!
//! What it sees to:
//!
//! - The body is turned into bytes once. The digest that a later attempt is compared with covers the method, the path with
//!   the query, and the body's bytes with the key in them: what a provider compares under one key. It covers neither host
//!   nor headers.
//! - Leave to send is asked for immediately before the request is handed to the connection, and an attempt sends once.
//! - Nothing below the ledger repeats a request or follows a redirect; there is no cookie store. A connection from the pool
//!   that was closed before any byte of the request was written is replaced by a new one: that is not a repeat.
//! - Every answer is judged by the [profile](super::Profile::judge). What did not arrive whole is unknown.
//!
//! The proxy that the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`) is used, as operators expect of a program
//! behind one; [`HttpClient::without_proxy`] ignores it.
//!
//! TLS is rustls with the *ring* provider and the roots of the platform. Where the program has installed another
//! provider for the process, that one is used.
//!
//! ```no_run
//! # use effectual::{EffectContext, Profile, provider::http::{HttpClient, HttpError, Secret}};
//! # async fn body(cx: &EffectContext, token: String) -> Result<(), HttpError> {
//! let profile = Profile::bundled("resend").expect("bundled");
//! let mail = HttpClient::new(profile, "https://api.resend.com")?.with_bearer(&Secret::new(token))?;
//! let to = serde_json::json!({ "from": "us@example.com", "to": "you@example.com", "subject": "Hi", "text": "…" });
//! let answer = mail.post("/emails").json(&to).send(cx).await?;
//! # let _ = answer;
//! # Ok(())
//! # }
//! ```
//!
//! An API of one's own: what it documents is a [`Profile`](crate::Profile), what its answers mean to the caller is an error
//! type that holds [`HttpError`], and the body converts by [`or_fail`](crate::OrFail::or_fail):
//!
//! ```
//! use std::time::Duration;
//!
//! use effectual::{
//!     EffectContext, Failure, Found, OrFail, Profile, Provider, RecoveryClass, effect,
//!     provider::{AnswerMeaning, AnswerRule, InFlightMeaning, KeyPlace, http::{HttpClient, HttpError}},
//! };
//! use serde::{Deserialize, Serialize};
//!
//! struct Parcels;
//!
//! impl Provider for Parcels {
//!     const NAME: &'static str = "parcels";
//!
//!     fn profile() -> Profile {
//!         Profile::undocumented(Self::NAME, "2026-11-30")
//!             .with_key_place(KeyPlace::Header("X-Request-Id".into()))
//!             .with_window(Duration::from_secs(12 * 60 * 60))
//!             .with_on_unknown(RecoveryClass::Resend) // a lost answer: the same key again, within the window
//!             .with_error_code_at("/code")
//!             .with_in_flight(InFlightMeaning::Refuses, None)
//!             .with_answer(AnswerRule::new(AnswerMeaning::KeyInFlight).status(409).code("in_progress"))
//!     }
//! }
//!
//! #[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
//! enum LabelError {
//!     #[error("no such address")]
//!     #[failure(refused)]
//!     NoSuchAddress,
//!     #[error("parcels: {0}")]
//!     #[failure(transparent)] // the verdict that the profile gave the answer
//!     Http(HttpError),
//! }
//!
//! impl From<HttpError> for LabelError {
//!     fn from(error: HttpError) -> Self {
//!         if error.code() == Some("address_invalid") { Self::NoSuchAddress } else { Self::Http(error) }
//!     }
//! }
//!
//! #[effect(keying = business_identity, provider = Parcels, on_unknown = reconcile(find_label))]
//! async fn buy_label(
//!     cx: &EffectContext,
//!     #[key] order: String,
//!     grams: u32,
//!     #[skip] parcels: HttpClient,
//! ) -> effectual::Result<String, LabelError> {
//!     let label = serde_json::json!({ "order": order, "grams": grams });
//!     let answer = parcels.post("/labels").json(&label).send(cx).await.or_fail()?;
//!     Ok(answer.json().or_fail()?)
//! }
//!
//! // Optional, and instead of the profile's class here: ask before anything is sent again.
//! async fn find_label(
//!     _cx: &EffectContext,
//!     order: String,
//!     _grams: u32,
//!     parcels: HttpClient,
//! ) -> Result<Found<String, LabelError>, LabelError> {
//!     let found: Vec<String> = parcels.get("/labels").query("order", order).send().await?.json()?;
//!     Ok(found.into_iter().next().map_or(Found::Absent, Found::Done))
//! }
//! ```

mod answer;
mod client;
mod error;
mod prepare;
mod query;
mod request;
mod secret;
mod transport;

pub use self::{
    answer::HttpAnswer,
    client::HttpClient,
    error::{HttpError, HttpErrorKind},
    query::HttpQuery,
    request::EffectRequest,
    secret::Secret,
};
