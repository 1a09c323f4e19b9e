use effectual::identity::{Arguments, KeyFields};

#[derive(effectual::Identity)]
enum Reason {
    #[key(nam = "damaged")]
    Damaged,
}

fn main() {
    let _ = KeyFields::new().field("reason", &Reason::Damaged);
    let _ = Arguments::new().argument("reason", &Reason::Damaged);
}
