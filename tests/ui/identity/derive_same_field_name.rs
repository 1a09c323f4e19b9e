#[derive(effectual::Identity)]
struct Refund {
    order: u64,
    #[key(name = "order")]
    order_id: u64,
}

fn main() {}
