use effectual::Failure;

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, Failure)]
#[error("mail")]
#[failure(refused)]
enum MailError {
    NoRoute,
}

fn main() {}
