#[derive(effectual::Fingerprint)]
struct Card {
    #[secret]
    number: String,
}

fn main() {}
