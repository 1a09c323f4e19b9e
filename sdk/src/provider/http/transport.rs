//! The only file that sends: reqwest, without anything that repeats a request.

use std::{error::Error, time::Duration};

use reqwest::{Response, StatusCode, redirect, retry};

use super::{
    answer::HttpAnswer,
    client::HttpClient,
    error::{HttpError, HttpErrorKind},
    prepare::Prepared,
};
use crate::provider::Answer;

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An idle connection older than this is not used again: one that the server closes in that moment costs an unknown end.
const POOL_IDLE: Duration = Duration::from_secs(15);

pub(super) fn client(proxy: bool) -> Result<reqwest::Client, HttpError> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing the race against another thread leaves that thread's provider in place, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let mut builder = reqwest::Client::builder()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        .user_agent(concat!("effectual/", env!("CARGO_PKG_VERSION")));
    if !proxy {
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| HttpError::request("TLS could not be set up: ".to_owned() + &reasons(&error)))
}

/// Sends a request and judges its answer.
pub(super) async fn exchange(
    client: &HttpClient,
    prepared: Prepared,
) -> (Result<HttpAnswer, HttpError>, bool) {
    let answer = match send(client, prepared).await {
        Ok(answer) => answer,
        Err(error) => return (Err(error), false),
    };
    let read = client.profile.judge(&view(&answer));
    let replayed = read.provider_replay;
    let result = match read.failure() {
        None => Ok(HttpAnswer { replayed, ..answer }),
        Some(verdict) => Err(HttpError::answered(answer.status, &answer.body, read, verdict)),
    };
    (result, replayed)
}

fn view(answer: &HttpAnswer) -> Answer<'_> {
    let text = answer.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    text.fold(Answer::new(answer.status), |view, (name, value)| view.header(name, value)).body(&answer.body)
}

/// The whole answer, whatever its status.
async fn send(client: &HttpClient, prepared: Prepared) -> Result<HttpAnswer, HttpError> {
    let Prepared { method, url, headers, body, .. } = prepared;
    let request = client.transport.request(method, url).headers(headers).timeout(client.timeout).body(body);
    let response = request.send().await.map_err(|error| unanswered(&error))?;
    let status = response.status();
    if status.is_redirection() {
        return Err(HttpError::new(HttpErrorKind::Redirected).with_status(status.as_u16()));
    }
    let headers = response.headers().clone();
    let body = read(response, client.answer_max, status).await?;
    Ok(HttpAnswer { status: status.as_u16(), headers, body, replayed: false })
}

async fn read(mut response: Response, max: usize, status: StatusCode) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > max => {
                return Err(HttpError::new(HttpErrorKind::TooLarge).with_status(status.as_u16()));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => {
                let kind = if error.is_timeout() { HttpErrorKind::Timeout } else { HttpErrorKind::Cut };
                return Err(HttpError::new(kind).with_status(status.as_u16()));
            }
        }
    }
}

/// Only an error of making the connection proves that nothing was sent.
fn unanswered(error: &reqwest::Error) -> HttpError {
    if error.is_builder() {
        return HttpError::request("the address cannot be used");
    }
    if error.is_connect() {
        return HttpError::new(HttpErrorKind::NoConnection).with_detail(reasons(error));
    }
    HttpError::new(if error.is_timeout() { HttpErrorKind::Timeout } else { HttpErrorKind::Cut })
}

/// The causes of an error without the address, which may have personal data in it.
fn reasons(error: &reqwest::Error) -> String {
    let mut texts = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts.dedup();
    texts.join(": ")
}
