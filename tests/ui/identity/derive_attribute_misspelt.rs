#[derive(effectual::Identity)]
struct Refund {
    #[ley(name = "order")]
    order_id: u64,
}

fn main() {}
