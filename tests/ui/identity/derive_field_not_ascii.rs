#[derive(effectual::Identity)]
struct Refund {
    größe: u64,
}

fn main() {}
