use effectual::Failure;

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, Failure)]
#[error("mail")]
enum MailError {
    #[failure(not_performed, retry, retry)]
    NoRoute,
}

fn main() {}
