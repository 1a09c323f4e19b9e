#[derive(effectual::Identity)]
struct Refund {
    #[key(name = "a", name = "b")]
    order: u64,
    #[key(name = "c")]
    #[key(name = "d")]
    line: u64,
}

fn main() {}
