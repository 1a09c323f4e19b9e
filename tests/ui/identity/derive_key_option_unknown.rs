#[derive(effectual::Identity)]
struct Refund {
    #[key(since = 2)]
    order: u64,
}

fn main() {}
