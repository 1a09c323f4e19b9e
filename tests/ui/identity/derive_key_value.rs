#[derive(effectual::Identity)]
struct Refund {
    #[key = "order"]
    order_id: u64,
}

fn main() {}
