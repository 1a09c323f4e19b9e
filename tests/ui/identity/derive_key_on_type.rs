#[derive(effectual::Identity)]
#[key(name = "refund")]
struct Refund {
    order: u64,
}

fn main() {}
