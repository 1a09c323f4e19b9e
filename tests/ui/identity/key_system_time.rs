use effectual::identity::KeyFields;

fn main() {
    let asked_at = std::time::SystemTime::now();
    let _ = KeyFields::new().field("asked_at", &asked_at);
}
