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
