//! How a layer behaves on its routes.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Extensions, HeaderName, HeaderValue, Response};

use super::refusal::Refusal;

/// A record is kept for at least a day.
pub(super) const RETENTION_MIN: Duration = Duration::from_secs(24 * 3600);

/// A shorter lease would end between two renewals on a busy machine.
pub(super) const LEASE_MIN: Duration = Duration::from_millis(100);

/// Of a stored answer's headers these are not given again: they belong to one connection, one moment, one request or one
/// session. The length is that of the stored body.
const HEADERS_DENIED: [&str; 25] = [
    "set-cookie",
    "date",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "x-request-id",
    "request-id",
    "x-correlation-id",
    "correlation-id",
    "x-trace-id",
    "x-b3-traceid",
    "x-amzn-trace-id",
    "x-amzn-requestid",
    "x-amz-request-id",
    "x-cloud-trace-context",
    "traceparent",
    "tracestate",
    "server-timing",
];

pub(super) type PrincipalSource = Arc<dyn Fn(&Extensions) -> Option<String> + Send + Sync>;
pub(super) type Renderer = Arc<dyn Fn(&Refusal) -> Response<Bytes> + Send + Sync>;

/// A setting that does not hold together; its text says which, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub(super) String);

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) is_required: bool,
    pub(super) is_quoted_accepted: bool,
    pub(super) wait: Duration,
    pub(super) lease: Duration,
    pub(super) retention: Duration,
    pub(super) request_body_max: usize,
    pub(super) response_body_max: usize,
    pub(super) stream_after: Duration,
    pub(super) marker: HeaderName,
    pub(super) not_replayable: HeaderName,
    pub(super) denied: BTreeSet<String>,
    pub(super) retriable_codes: BTreeSet<String>,
    pub(super) endpoint: Option<Arc<str>>,
    pub(super) principal: Option<PrincipalSource>,
    pub(super) renderer: Renderer,
}

/// What marks an answer as given again.
pub(super) const TRUE: HeaderValue = HeaderValue::from_static("true");
pub(super) const FALSE: HeaderValue = HeaderValue::from_static("false");

impl Default for Settings {
    fn default() -> Self {
        Self {
            is_required: false,
            is_quoted_accepted: false,
            wait: Duration::from_secs(10),
            lease: Duration::from_secs(30),
            retention: RETENTION_MIN,
            request_body_max: 2 << 20,
            response_body_max: 1 << 20,
            stream_after: Duration::from_secs(5),
            marker: HeaderName::from_static("openwop-idempotent-replay"),
            not_replayable: HeaderName::from_static("openwop-idempotent-replayable"),
            denied: HEADERS_DENIED.into_iter().map(str::to_owned).collect(),
            retriable_codes: BTreeSet::new(),
            endpoint: None,
            principal: None,
            renderer: Arc::new(Refusal::render),
        }
    }
}

impl Settings {
    pub(super) fn refuse(&self, refusal: Refusal) -> Response<Bytes> {
        refusal.finish((self.renderer)(&refusal))
    }

    pub(super) fn lease_ms(&self) -> i64 {
        in_ms(self.lease)
    }

    pub(super) fn retention_ms(&self) -> i64 {
        in_ms(self.retention)
    }

    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.retention < RETENTION_MIN {
            return Err(SettingsError(format!(
                "`retention` ({:?}) must be at least 24 hours: a record that is forgotten earlier lets a late retry run \
                 again",
                self.retention
            )));
        }
        if self.lease < LEASE_MIN {
            return Err(SettingsError(format!(
                "`lease` ({:?}) must be at least {LEASE_MIN:?}: it must outlast several renewals",
                self.lease
            )));
        }
        if self.marker == self.not_replayable {
            return Err(SettingsError(format!(
                "`marker` ({}) is also the header of answers that cannot be given again; name another",
                self.marker
            )));
        }
        Ok(())
    }
}

pub(super) fn in_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
