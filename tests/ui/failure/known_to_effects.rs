use effectual::{EffectContext, Failure, effect};

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, Failure)]
#[error("mail")]
enum MailError {
    #[failure(refuse)]
    Bounced,
}

// The mistake is reported once, and not at each effect that returns the error.
#[effect(keying = business_identity)]
async fn mail(_cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<u64, MailError> {
    if order_id == 0 {
        Err(MailError::Bounced)?;
    }
    Ok(order_id)
}

fn main() {}
