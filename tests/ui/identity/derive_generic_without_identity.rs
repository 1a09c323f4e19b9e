use effectual::identity::KeyFields;

#[derive(effectual::Identity)]
struct Page<T> {
    of: T,
}

fn main() {
    let page = Page { of: 1.5 };
    let _ = KeyFields::new().field("page", &page);
}
