#[derive(effectual::Identity)]
#[effectual(name = "refund")]
struct Refund {
    order: u64,
}

fn main() {}
