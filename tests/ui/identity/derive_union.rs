#[derive(effectual::Identity)]
union Word {
    signed: i32,
    unsigned: u32,
}

fn main() {}
