#[derive(effectual::Identity)]
struct Payout {
    account: u64,
    asked_at: std::time::Instant,
}

fn main() {}
