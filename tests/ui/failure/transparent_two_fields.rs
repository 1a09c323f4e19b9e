use effectual::Failure;

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, Failure)]
#[error("mail")]
enum MailError {
    #[failure(transparent)]
    Http(String, u16),
}

fn main() {}
