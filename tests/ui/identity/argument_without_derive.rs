use effectual::identity::Arguments;

struct Client;

fn main() {
    let client = Client;
    let _ = Arguments::new().argument("client", &client);
}
