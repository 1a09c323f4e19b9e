#[derive(effectual::Identity)]
struct Refund {
    #[key(name = order)]
    order: u64,
}

fn main() {}
