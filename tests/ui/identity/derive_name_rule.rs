#[derive(effectual::Identity)]
struct Refund {
    #[key(name = "order id")]
    order: u64,
    #[key(name = "")]
    line: u64,
}

fn main() {}
