//! A charge at a real server, for something to refund.

use serde_json::Value;

/// Any secret of the test kind will do: the servers know no accounts.
pub const SECRET: &str = "sk_test_123";

/// A charge of 1,000 cents at stripe-stateful-mock.
///
/// # Panics
/// When the server refuses.
pub async fn at_stripe_mock(url: &str) -> String {
    let charge = post(url, "charges", "amount=1000&currency=usd&source=tok_visa").await;
    id(&charge)
}

/// A charge of 1,000 cents at localstripe, and its customer: only customers with a card are charged there.
///
/// # Panics
/// When the server refuses.
pub async fn at_localstripe(url: &str) -> (String, String) {
    let (customer, _) = card_at_localstripe(url).await;
    let charge = post(url, "charges", &format!("amount=1000&currency=usd&customer={customer}")).await;
    (id(&charge), customer)
}

/// A customer at localstripe, and the card that is charged.
///
/// # Panics
/// When the server refuses.
pub async fn card_at_localstripe(url: &str) -> (String, String) {
    let card = "card[number]=4242424242424242&card[exp_month]=12&card[exp_year]=2030&card[cvc]=123";
    let token = id(&post(url, "tokens", card).await);
    let email = format!("{}@example.com", uuid::Uuid::new_v4().simple());
    let customer = post(url, "customers", &format!("email={email}&source={token}")).await;
    let card = customer["default_source"].as_str().expect("the card of a customer");
    (id(&customer), card.to_owned())
}

fn id(object: &Value) -> String {
    object["id"].as_str().unwrap_or_else(|| panic!("an object with an id, not {object}")).to_owned()
}

async fn post(url: &str, path: &str, form: &str) -> Value {
    // The client wants one, also for plain HTTP; another test may have installed it.
    drop(rustls::crypto::ring::default_provider().install_default());
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let request = http.post(format!("{url}/v1/{path}")).bearer_auth(SECRET).body(form.to_owned());
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.send().await.expect("an answer").bytes().await.expect("a body");
    serde_json::from_slice(&answer).expect("JSON")
}
