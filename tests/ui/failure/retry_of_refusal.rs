use effectual::Failure;

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, Failure)]
#[error("mail")]
enum MailError {
    #[failure(refused, retry)]
    NoRoute,
}

fn main() {}
