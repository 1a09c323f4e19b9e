use effectual::effect;

#[effect(keying = business_identity)]
struct Refund;

fn main() {
    let _ = Refund;
}
