#[derive(effectual::Fingerprint)]
struct Tags {
    tags: std::collections::HashSet<String>,
}

fn main() {}
