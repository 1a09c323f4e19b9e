//! What the other tests take for granted of the servers: the provider that deduplicates, the one that does not, and a
//! network that loses answers after the provider acted.

use effectual_tests::microburst::Microburst;
use effectual_tests::servers;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends one form to `url`, and gives all that came back until the connection's end.
async fn post(url: &str, path: &str, key: &str, form: &str) -> String {
    let authority = url.strip_prefix("http://").expect("a URL of a server here");
    let mut stream = TcpStream::connect(authority).await.expect("the server");
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nAuthorization: Bearer sk_test_x\r\n\
         Idempotency-Key: {key}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\n\r\n{form}",
        form.len()
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await; // a broken connection is an answer here too
    String::from_utf8_lossy(&answer).into_owned()
}

/// The first value of that field in an answer of either Stripe server; they space their JSON differently.
fn field(answer: &str, name: &str) -> Option<String> {
    let (_, rest) = answer.split_once(&format!("\"{name}\":"))?;
    rest.trim_start().strip_prefix('"')?.split_once('"').map(|(value, _)| value.to_owned())
}

#[tokio::test]
async fn a_lost_answer_is_replayed_by_a_provider_that_deduplicates() {
    let part = "network: lost answers, deduplicating provider";
    let (Some(provider), Some(executable)) = (servers::stripe_mock(part), servers::microburst(part)) else {
        return;
    };
    let proxy = Microburst::in_front_of(&executable, &provider).await;
    proxy.rules(json!([{"times": 2, "response": {"abort_bytes": 0}}])).await;

    let form = "amount=1000&currency=usd&source=tok_visa";
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(post(&proxy.url(), "/v1/charges", "lost-answers", form).await);
    }

    assert_eq!(answers.iter().map(|a| field(a, "id").is_some()).collect::<Vec<_>>(), [false, false, true]);
    assert!(answers[2].to_ascii_lowercase().contains("idempotent-replayed: true"), "{}", answers[2]);
    assert_eq!(proxy.fired().await, ["response:abort", "response:abort"]);
    let arrivals = proxy.arrivals();
    assert_eq!(arrivals.len(), 3);
    for arrival in &arrivals {
        assert_eq!((arrival.method.as_str(), arrival.path.as_str()), ("POST", "/v1/charges"));
        assert_eq!(arrival.idempotency_key.as_deref(), Some("lost-answers"));
        assert_eq!(arrival.body, form.as_bytes());
    }
}

#[tokio::test]
async fn a_provider_without_idempotency_performs_again() {
    let part = "network: lost answers, provider without idempotency";
    let (Some(provider), Some(executable)) = (servers::localstripe(part), servers::microburst(part)) else {
        return;
    };
    let proxy = Microburst::in_front_of(&executable, &provider).await;
    let first = post(&proxy.url(), "/v1/customers", "same-key", "email=a%40example.com").await;
    let second = post(&proxy.url(), "/v1/customers", "same-key", "email=a%40example.com").await;
    assert!(field(&first, "id").is_some_and(|id| id.starts_with("cus_")), "{first}");
    assert_ne!(field(&first, "id"), field(&second, "id"));
}

#[tokio::test]
async fn a_reset_and_a_refusal_keep_the_provider_uncalled() {
    let part = "network: resets and refusals";
    let (Some(provider), Some(executable)) = (servers::stripe_mock(part), servers::microburst(part)) else {
        return;
    };
    let proxy = Microburst::in_front_of(&executable, &provider).await;
    proxy.rules(json!([{"times": 1, "reset": true}])).await;
    assert_eq!(post(&proxy.url(), "/v1/customers", "r1", "email=b%40example.com").await, "");
    proxy.rules(json!([{"times": 1, "error": {"code": "ServiceUnavailable", "status": 503}}])).await;
    let refused = post(&proxy.url(), "/v1/customers", "r1", "email=b%40example.com").await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(proxy.arrivals().is_empty());
    let passed = post(&proxy.url(), "/v1/customers", "r1", "email=b%40example.com").await;
    assert!(passed.starts_with("HTTP/1.1 200 "), "{passed}");
    assert_eq!(proxy.arrivals().len(), 1);
}
