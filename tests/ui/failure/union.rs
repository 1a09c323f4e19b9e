use effectual::Failure;

#[derive(Failure)]
union MailError {
    code: u16,
}

fn main() {}
