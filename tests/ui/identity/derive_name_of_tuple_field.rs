#[derive(effectual::Identity)]
struct Pair(#[key(name = "one")] u64, u64);

fn main() {}
