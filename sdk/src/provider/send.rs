//! Leave to send: checked immediately before bytes leave the process.

use crate::failure::{Failure, Verdict};

/// Proof that the send permit was given. Write the request at once: the permit does not wait.
#[derive(Debug)]
#[must_use = "the permit is for the request that is sent right now"]
pub struct SendPermit(pub(crate) ());

/// Why nothing may be sent. The provider was not called by this attempt, but for
/// [`SecondSend`](SendRefused::SecondSend).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SendRefused {
    /// The claim's authority could end while the request is under way. A new attempt is made under a new claim.
    #[error("the lease has too little time left for another request; the request was not sent")]
    LeaseTooShort,
    /// The executor's drain deadline has passed.
    #[error("the executor is draining; the request was not sent")]
    Draining,
    /// The provider's window for this key is over: it would perform the request again.
    #[error("the provider's deduplication window is over for this effect; the request was not sent")]
    WindowOver,
    /// The request differs from the one that an attempt in doubt sent under this key.
    #[error("the request differs from the one that was sent under this key before; it was not sent")]
    ChangedRequest,
    /// This attempt has sent already. Further sends are further effects.
    #[error("this attempt has sent a request already; a second one is another effect; it was not sent")]
    SecondSend,
    /// A look-up must not send anything that changes the provider.
    #[error("a look-up asks and does not act; the request was not sent")]
    LookUp,
    /// The effect commits in a transaction of the ledger's database: what it sent could not be rolled back with it.
    #[error("a transactional effect acts in its transaction alone; the request was not sent")]
    Transactional,
}

impl Failure for SendRefused {
    /// Not performed by this attempt, but for [`SecondSend`](Self::SecondSend): what the first request did, the body
    /// must say, and with this error it does not. Only a lease that is too short is mended by another attempt.
    fn verdict(&self) -> Verdict {
        match self {
            Self::SecondSend => Verdict::Unknown,
            Self::LeaseTooShort => Verdict::NotPerformed { retry: true },
            Self::Draining | Self::WindowOver | Self::ChangedRequest | Self::LookUp | Self::Transactional => {
                Verdict::NotPerformed { retry: false }
            }
        }
    }
}
