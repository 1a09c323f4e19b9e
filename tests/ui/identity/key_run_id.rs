#[derive(effectual::Identity)]
struct Mail {
    run: effectual::RunId,
}

fn main() {}
