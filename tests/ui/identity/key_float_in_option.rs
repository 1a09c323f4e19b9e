#[derive(effectual::Identity)]
enum Discount {
    None,
    Percent { value: Option<f32> },
}

fn main() {}
