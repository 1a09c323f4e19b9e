#[derive(effectual::Fingerprint)]
struct Order {
    #[fingerprint(json)]
    lines: std::collections::HashMap<String, u8>,
}

fn main() {}
