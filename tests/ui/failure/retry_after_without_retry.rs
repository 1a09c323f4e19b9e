use effectual::Failure;

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, Failure)]
#[error("mail")]
enum MailError {
    #[failure(not_performed, retry_after = delay)]
    Busy { delay: std::time::Duration },
}

fn main() {}
