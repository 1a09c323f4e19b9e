use effectual::Failure;

#[derive(Debug, thiserror::Error, serde::Serialize, Failure)]
#[error("mail to {address}")]
struct MailError<'a> {
    address: &'a str,
}

fn main() {}
