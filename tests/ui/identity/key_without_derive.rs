use effectual::identity::KeyFields;

struct OrderId(u64);

fn main() {
    let order = OrderId(7);
    let _ = KeyFields::new().field("order", &order);
}
