#[derive(effectual::Identity)]
#[effectual]
struct Refund {
    order: u64,
}

fn main() {}
