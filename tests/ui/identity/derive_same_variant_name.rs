#[derive(effectual::Identity)]
enum Reason {
    #[key(name = "other")]
    Damaged,
    #[key(name = "other")]
    Late,
}

fn main() {}
