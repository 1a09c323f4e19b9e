#[derive(effectual::Identity)]
struct Refund {
    #[key]
    order: u64,
    note: String,
}

fn main() {}
