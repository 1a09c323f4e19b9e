//! From what a caller said to the bytes that are sent. Pure.

use std::{collections::BTreeMap, fmt};

use reqwest::{
    Method, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde::de::IgnoredAny;

use super::{
    client::{HttpClient, header},
    error::HttpError,
};
use crate::provider::KeyPlace;

/// A request as the caller said it. `Debug` shows the method only.
pub(super) struct Draft {
    method: String,
    path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
}

pub(super) enum Body {
    Empty,
    Json(Vec<u8>),
    Form(Vec<(String, String)>),
    Bytes(Vec<u8>),
    /// Why there are no bytes.
    Unwritable(&'static str),
}

/// A request as it is sent.
pub(super) struct Prepared {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    pub(super) digest: [u8; 32],
}

impl KeyPlace {
    /// Whether the adapter puts the key there.
    pub(super) fn is_filled_in(&self) -> bool {
        matches!(self, Self::Header(_) | Self::BodyField(_) | Self::Query(_))
    }
}

impl Draft {
    pub(super) fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Body::Empty,
        }
    }

    /// Whether the caller put something where the key goes.
    pub(super) fn holds_key(&self, place: &KeyPlace, common: &HeaderMap) -> Result<bool, HttpError> {
        Ok(match place {
            KeyPlace::Header(name) => {
                common.contains_key(name.as_str())
                    || self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
            }
            KeyPlace::Query(name) => {
                let (_, written) = self.path.split_once('?').unwrap_or_default();
                self.query.iter().any(|(own, _)| own == name)
                    || form_urlencoded::parse(written.as_bytes()).any(|(own, _)| own == name.as_str())
            }
            KeyPlace::BodyField(name) => match &self.body {
                Body::Json(bytes) => fields(bytes, name)?.contains_key(name),
                Body::Form(fields) => fields.iter().any(|(own, _)| own == name),
                _ => false,
            },
            KeyPlace::Elsewhere(_) | KeyPlace::Nowhere => false,
        })
    }

    /// Puts the key where nothing is yet.
    pub(super) fn place_key(&mut self, place: &KeyPlace, key: &str) -> Result<(), HttpError> {
        match place {
            KeyPlace::Header(name) => self.headers.push((name.clone(), key.to_owned())),
            KeyPlace::Query(name) => self.query.push((name.clone(), key.to_owned())),
            KeyPlace::BodyField(name) => match &mut self.body {
                Body::Json(bytes) => add_field(bytes, name, key)?,
                Body::Form(fields) => fields.push((name.clone(), key.to_owned())),
                Body::Unwritable(_) => {}
                Body::Empty | Body::Bytes(_) => {
                    return Err(HttpError::request(format!(
                        "the provider takes the key in the body field `{name}`: give the body with `json` or `form`"
                    )));
                }
            },
            KeyPlace::Elsewhere(_) | KeyPlace::Nowhere => {}
        }
        Ok(())
    }

    /// The bytes of the request, and the digest over what a provider compares under one key.
    pub(super) fn prepare(self, client: &HttpClient) -> Result<Prepared, HttpError> {
        let method = Method::from_bytes(self.method.as_bytes())
            .map_err(|_| HttpError::request("the method has characters that it cannot have"))?;
        let target = self.target()?;
        let url = Url::parse(&format!("{}{target}", client.base))
            .map_err(|_| HttpError::request("the path cannot be part of an address"))?;
        let mut headers = client.headers.clone();
        for (name, value) in &self.headers {
            let (name, mut value) = header(name, value)?;
            // A key or a caller's credential: not for anyone's log.
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let (body, content_type) = self.body.into_bytes()?;
        if let (Some(content_type), false) = (content_type, headers.contains_key(CONTENT_TYPE)) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        let digest = digest(&[method.as_str().as_bytes(), target.as_bytes(), &body]);
        Ok(Prepared { method, url, headers, body, digest })
    }

    /// The path and the query.
    fn target(&self) -> Result<String, HttpError> {
        if !self.path.starts_with('/') || self.path.contains('#') {
            return Err(HttpError::request("the path must start with `/` and have no fragment"));
        }
        if self.query.is_empty() {
            return Ok(self.path.clone());
        }
        let joint = if self.path.contains('?') { '&' } else { '?' };
        Ok(format!("{}{joint}{}", self.path, form(&self.query)))
    }
}

impl Body {
    fn into_bytes(self) -> Result<(Vec<u8>, Option<&'static str>), HttpError> {
        match self {
            Self::Empty => Ok((Vec::new(), None)),
            Self::Json(bytes) => Ok((bytes, Some("application/json"))),
            Self::Form(fields) => Ok((form(&fields).into_bytes(), Some("application/x-www-form-urlencoded"))),
            Self::Bytes(bytes) => Ok((bytes, None)),
            Self::Unwritable(rule) => Err(HttpError::request(rule)),
        }
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").field("method", &self.method).finish_non_exhaustive()
    }
}

fn form(fields: &[(String, String)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn fields(json: &[u8], name: &str) -> Result<BTreeMap<String, IgnoredAny>, HttpError> {
    serde_json::from_slice(json).map_err(|_| {
        HttpError::request(format!(
            "the provider takes the key in the body field `{name}`: the JSON body must be an object"
        ))
    })
}

/// Adds the field in front of the others and leaves their bytes as they are.
fn add_field(json: &mut Vec<u8>, name: &str, key: &str) -> Result<(), HttpError> {
    let others = fields(json, name)?;
    let pair = BTreeMap::from([(name, key)]);
    let mut object =
        serde_json::to_vec(&pair).map_err(|_| HttpError::request("the key cannot be written"))?;
    if !others.is_empty() {
        object.pop();
        object.push(b',');
        object.extend_from_slice(&json[1..]);
    }
    *json = object;
    Ok(())
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("effectual http request 1");
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
