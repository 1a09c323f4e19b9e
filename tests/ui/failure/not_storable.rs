use effectual::Failure;

#[derive(Debug, thiserror::Error, serde::Serialize, Failure)]
#[error("mail")]
#[failure(refused)]
struct MailError;

fn main() {}
