#[derive(effectual::Identity)]
struct Refund {
    #[effectual(crate = effectual)]
    order: u64,
}

fn main() {}
