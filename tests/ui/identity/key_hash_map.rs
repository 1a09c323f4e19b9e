use std::collections::HashMap;

#[derive(effectual::Identity)]
struct Labels(HashMap<String, String>);

fn main() {}
