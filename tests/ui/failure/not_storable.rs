use effectual::Failure;

#[derive(Debug, thiserror::Error, Failure)]
#[error("mail")]
#[failure(refused)]
struct MailError;

fn main() {}
