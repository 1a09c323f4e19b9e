#[derive(effectual::Identity)]
struct Refund {
    order: u64,
    amount: f64,
}

fn main() {}
