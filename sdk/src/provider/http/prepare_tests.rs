use super::*;
use crate::provider::{
    Profile,
    http::{HttpErrorKind, Secret},
};

const KEY: &str = "9f0c7d3e-0000-4000-8000-000000000000";

fn client(place: KeyPlace) -> HttpClient {
    let profile = Profile::undocumented("test", "2026-11-30").with_key_place(place);
    HttpClient::new(profile, "http://localhost:1/base/").expect("a client")
}

fn header_place() -> KeyPlace {
    KeyPlace::Header("Idempotency-Key".into())
}

fn draft(path: &str, body: Body) -> Draft {
    Draft { body, ..Draft::new("POST", path) }
}

fn form_body(fields: &[(&str, &str)]) -> Body {
    Body::Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

/// The request as it would be sent with the key.
fn sent(place: KeyPlace, mut draft: Draft) -> Result<Prepared, HttpError> {
    draft.place_key(&place, KEY)?;
    draft.prepare(&client(place))
}

fn text(prepared: &Prepared) -> &str {
    std::str::from_utf8(&prepared.body).expect("text")
}

fn detail(result: Result<Prepared, HttpError>) -> String {
    let error = result.err().expect("a refusal");
    assert_eq!(error.kind(), HttpErrorKind::Request);
    error.to_string()
}

#[test]
fn the_key_goes_where_the_profile_says() {
    let prepared = sent(header_place(), draft("/a?b=c", Body::Json(b"{}".to_vec()))).expect("prepared");
    assert_eq!(prepared.headers["idempotency-key"], KEY);
    assert_eq!(prepared.headers["content-type"], "application/json");
    assert_eq!((prepared.url.as_str(), text(&prepared)), ("http://localhost:1/base/a?b=c", "{}"));

    let field = || KeyPlace::BodyField("key".into());
    for (json, expected) in [
        (r#"{"amount":0.1}"#, format!(r#"{{"key":"{KEY}","amount":0.1}}"#)),
        ("{}", format!(r#"{{"key":"{KEY}"}}"#)),
    ] {
        let prepared = sent(field(), draft("/", Body::Json(json.into()))).expect("prepared");
        assert_eq!(text(&prepared), expected);
    }
    let prepared = sent(field(), draft("/", form_body(&[("a b", "ä&=")]))).expect("prepared");
    assert_eq!(text(&prepared), format!("a+b=%C3%A4%26%3D&key={KEY}"));
    assert_eq!(prepared.headers["content-type"], "application/x-www-form-urlencoded");

    for (path, expected) in [("/a", "/base/a?key="), ("/a?b=c", "/base/a?b=c&key=")] {
        let prepared = sent(KeyPlace::Query("key".into()), draft(path, Body::Empty)).expect("prepared");
        assert_eq!(prepared.url.as_str(), format!("http://localhost:1{expected}{KEY}"));
    }
    for place in [KeyPlace::Nowhere, KeyPlace::Elsewhere("somewhere".into())] {
        let prepared = sent(place, draft("/a", Body::Json(b"[]".to_vec()))).expect("prepared");
        assert!(!format!("{:?}{}{}", prepared.headers, prepared.url, text(&prepared)).contains(KEY));
    }
}

#[test]
fn a_key_that_is_there_already_is_seen() {
    let field = KeyPlace::BodyField("key".into());
    let query = KeyPlace::Query("key".into());
    let with_header =
        Draft { headers: vec![("IDEMPOTENCY-key".into(), "x".into())], ..Draft::new("POST", "/") };
    for (place, draft, expected) in [
        (header_place(), with_header, true),
        (header_place(), draft("/", Body::Empty), false),
        (field.clone(), draft("/", Body::Json(br#"{"key":null}"#.to_vec())), true),
        (field.clone(), draft("/", Body::Json(br#"{"other":{"key":1}}"#.to_vec())), false),
        (field.clone(), draft("/", form_body(&[("key", "")])), true),
        (query.clone(), draft("/?key=x", Body::Empty), true),
        (query, draft("/?other=key", Body::Empty), false),
    ] {
        assert_eq!(draft.holds_key(&place, &HeaderMap::new()), Ok(expected), "{place:?}");
    }
    let common = client(header_place()).with_header("idempotency-key", "x").expect("a header");
    assert_eq!(draft("/", Body::Empty).holds_key(&header_place(), &common.headers), Ok(true));
}

#[test]
fn what_cannot_be_sent_says_why_and_shows_no_value() {
    let field = || KeyPlace::BodyField("key".into());
    let object = "the JSON body must be an object";
    assert!(detail(sent(field(), draft("/", Body::Json(b"[1]".to_vec())))).contains(object));
    assert!(detail(sent(field(), draft("/", Body::Bytes(b"{}".to_vec())))).contains("with `json` or `form`"));
    assert!(detail(sent(field(), draft("/", Body::Empty))).contains("with `json` or `form`"));
    assert!(detail(sent(field(), draft("/", Body::Unwritable("no bytes")))).contains("no bytes"));
    for path in ["", "a", "http://elsewhere/", "@elsewhere/", "/a#b"] {
        assert!(
            detail(sent(header_place(), draft(path, Body::Empty))).contains("must start with `/`"),
            "{path}"
        );
    }
    let bad = Draft { headers: vec![("x".into(), "canary\n".into())], ..Draft::new("POST", "/") };
    let said = detail(sent(header_place(), bad));
    assert!(said.contains("header `x`") && !said.contains("canary"), "{said}");
    assert!(detail(sent(header_place(), Draft::new("PO ST", "/"))).contains("method"));
}

#[test]
fn the_digest_covers_what_a_provider_compares() {
    let digest = |method: &str, path: &str, body: &str| {
        let mut draft = Draft::new(method, path);
        draft.body = Body::Bytes(body.into());
        sent(header_place(), draft).expect("prepared").digest
    };
    let first = digest("POST", "/a?b", "c");
    assert_eq!(first, digest("POST", "/a?b", "c"));
    for other in [digest("PUT", "/a?b", "c"), digest("POST", "/a", "c"), digest("POST", "/a?b", "d")] {
        assert_ne!(first, other);
    }
    assert_ne!(digest("POST", "/a", "bc"), digest("POST", "/ab", "c"), "the parts are told apart");
    let elsewhere = client(header_place()).with_base("http://localhost:2").expect("a base");
    let mut moved = draft("/a?b", Body::Bytes(b"c".to_vec()));
    moved.headers.push(("x-trace".into(), "1".into()));
    assert_eq!(moved.prepare(&elsewhere).expect("prepared").digest, first, "neither host nor headers");
}

#[test]
fn a_base_with_credentials_is_refused_and_a_secret_shows_nowhere() {
    let profile = || Profile::undocumented("test", "2026-11-30");
    for base in ["", "localhost", "ftp://x", "http://u:canary@x", "http://u@x", "http://x/?q", "http://x/#f"]
    {
        let error = HttpClient::new(profile(), base).expect_err(base);
        assert!(!format!("{error}{error:?}").contains("canary"));
    }
    let secret = Secret::new("canary");
    let client = client(header_place()).with_bearer(&secret).expect("a header");
    let request = client.post("/canary").header("x", "canary").json("canary").query("canary", "canary");
    let shown = format!("{secret:?}{client:?}{request:?}{:?}", client.headers);
    assert!(!shown.contains("canary"), "{shown}");
    let prepared = draft("/", Body::Empty).prepare(&client).expect("prepared");
    assert_eq!(prepared.headers["authorization"], "Bearer canary");
    let bad = client.with_bearer(&Secret::new("canary\n")).expect_err("a line break");
    assert!(!format!("{bad}{bad:?}").contains("canary"));
}
