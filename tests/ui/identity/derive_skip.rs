#[derive(effectual::Identity)]
struct Refund {
    order: u64,
    #[skip]
    note: String,
}

fn main() {}
