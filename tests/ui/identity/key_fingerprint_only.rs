use effectual::identity::KeyFields;

#[derive(effectual::Fingerprint)]
struct Weight(f64);

fn main() {
    let weight = Weight(2.5);
    let _ = KeyFields::new().field("weight", &weight);
}
