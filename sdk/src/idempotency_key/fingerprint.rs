//! The digest of what is asked.

use http::{Extensions, HeaderMap, Uri, header, request::Parts};

use super::json;

/// Separates these digests from every other that the library makes.
const DOMAIN: &str = "effectual idempotency request v1";

/// Method, path with its parameters, query and body.
pub(super) fn of(parts: &Parts, body: &[u8]) -> [u8; 32] {
    let uri = full_uri(&parts.uri, &parts.extensions);
    let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    };
    part(parts.method.as_str().as_bytes());
    part(uri.path().as_bytes());
    // No query and an empty one are two URLs.
    part(&[u8::from(uri.query().is_some())]);
    part(uri.query().unwrap_or_default().as_bytes());
    match is_json(&parts.headers).then(|| json::canonical(body)).flatten() {
        Some(canonical) => {
            part(b"json");
            part(&canonical);
        }
        None => {
            part(b"bytes");
            part(body);
        }
    }
    *hasher.finalize().as_bytes()
}

/// The URL as it was asked for: a nested router shortens the request's own.
pub(super) fn full_uri<'a>(uri: &'a Uri, extensions: &'a Extensions) -> &'a Uri {
    #[cfg(feature = "axum")]
    if let Some(original) = extensions.get::<axum::extract::OriginalUri>() {
        return &original.0;
    }
    let _ = extensions;
    uri
}

/// Whether the body is JSON as it stands, and not encoded for the way.
fn is_json(headers: &HeaderMap) -> bool {
    if headers.contains_key(header::CONTENT_ENCODING) {
        return false;
    }
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(is_json_type)
}

/// `application/json`, or a type that ends with `+json`.
pub(super) fn is_json_type(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_request(method: &str, uri: &str, content_type: &str, body: &str) -> [u8; 32] {
        let request = http::Request::builder().method(method).uri(uri).header("content-type", content_type);
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        of(&parts, body.as_bytes())
    }

    #[test]
    fn each_part_counts() {
        let json = "application/json; charset=utf-8";
        let one = of_request("POST", "/x/1?q=1", json, "{\"a\":1,\"b\":2}");
        assert_eq!(one, of_request("POST", "/x/1?q=1", "application/problem+json", " {\"b\":2, \"a\":1}"));
        for (method, uri, content_type, body) in [
            ("PUT", "/x/1?q=1", json, "{\"a\":1,\"b\":2}"),
            ("POST", "/x/2?q=1", json, "{\"a\":1,\"b\":2}"),
            ("POST", "/x/1?q=2", json, "{\"a\":1,\"b\":2}"),
            ("POST", "/x/1", json, "{\"a\":1,\"b\":2}"),
            ("POST", "/x/1?q=1", json, "{\"a\":1,\"b\":3}"),
            ("POST", "/x/1?q=1", "text/plain", "{\"a\":1,\"b\":2}"),
        ] {
            assert_ne!(
                one,
                of_request(method, uri, content_type, body),
                "{method} {uri} {content_type} {body}"
            );
        }
        assert_ne!(of_request("POST", "/x?", json, ""), of_request("POST", "/x", json, ""));
    }

    #[test]
    fn bytes_are_compared_as_they_are() {
        assert_ne!(of_request("POST", "/", "text/plain", "{ }"), of_request("POST", "/", "text/plain", "{}"));
        assert_ne!(
            of_request("POST", "/", "application/json", "{ "),
            of_request("POST", "/", "application/json", "{")
        );
    }
}
