//! The life of one keyed request: asks for its record, then runs, waits or is answered.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;
use tracing::Instrument as _;

use super::{
    answer::{self, Ending, Taken},
    body::ResponseBody,
    keeper::Keep,
    keyed::KeyedRequest,
    layer::IdempotencyKeyLayer,
    refusal::{Refusal, RefusalKind},
    settings::TRUE,
};
use crate::{
    clock::{self, Moment, Until},
    ledger::{
        LedgerError,
        requests::{Begin, Begun, Change, Changed, Owner, RequestState, StoredResponse, judge},
    },
    telemetry,
};

/// How often a waiter looks again: from the first pause, each twice as long, up to the last.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_LAST: Duration = Duration::from_millis(250);

/// Between two tries to store an end.
const PAUSE_STORING: Duration = Duration::from_millis(50);

/// A request that has a key.
pub(super) struct Asked {
    pub(super) begin: Begin,
    pub(super) layer: IdempotencyKeyLayer,
}

type Answer<B, E> = Result<Response<ResponseBody<B>>, E>;

pub(super) async fn drive<S, Q, B>(inner: S, request: Request<Q>, asked: Asked) -> Answer<B, S::Error>
where
    S: Service<Request<Q>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    Q: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send + 'static,
{
    let since = Moment::now();
    asked.layer.shared.sweep_if_due();
    match asked.layer.shared.store.begin(&asked.begin).await {
        Ok(Begun::Run(owner)) => asked.run(inner, request, owner, since).await,
        Ok(Begun::InFlight) => Ok(asked.wait().await),
        Ok(told) => Ok(asked.told(told)),
        Err(error) => {
            telemetry::request_store_failed("beginning", &error);
            Ok(asked.refuse(RefusalKind::StoreUnavailable))
        }
    }
}

impl Asked {
    async fn run<S, Q, B>(
        &self,
        mut inner: S,
        mut request: Request<Q>,
        owner: Owner,
        since: Moment,
    ) -> Answer<B, S::Error>
    where
        S: Service<Request<Q>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        Q: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Send + 'static,
    {
        let (shared, settings) = (&self.layer.shared, &self.layer.settings);
        let owned = Some((owner.clone(), Arc::clone(shared)));
        request.extensions_mut().insert(KeyedRequest::new(Arc::clone(settings), owned));
        let taking = Arc::clone(settings);
        let run = async move {
            let response = inner.call(request).await?;
            Ok(answer::take(response, &taking).await)
        };
        let handler = tokio::spawn(run.in_current_span());
        let _kept = shared.keeper.keep(Keep {
            store: Arc::clone(&shared.store),
            owner: owner.clone(),
            lease: settings.lease,
            lease_ms: settings.lease_ms(),
            since,
            handler: handler.abort_handle(),
        });
        let (ending, answer) = match handler.await {
            Ok(Ok(Taken { ending, response })) => (ending, Ok(response)),
            Ok(Err(error)) => (Ending::Retryable, Err(error)),
            // The text of a panic may hold anything; it is not kept.
            Err(gone) if gone.is_panic() => (Ending::Retryable, Ok(self.refuse(RefusalKind::HandlerFailed))),
            Err(_) => (Ending::Retryable, Ok(self.refuse(RefusalKind::HandlerStopped))),
        };
        self.end(&owner, &ending.change(settings.retention_ms()), answer).await
    }

    /// Stores how it ended, then answers.
    async fn end<B: Body, E>(&self, owner: &Owner, change: &Change, answer: Answer<B, E>) -> Answer<B, E> {
        let stored = self.store(owner, change).await;
        self.layer.shared.waiters.ended(owner.key.digest());
        match stored {
            Ok(Changed::Done | Changed::Settled) => {
                telemetry::request_ended("executed");
                answer
            }
            // Another has taken the record over, and its answer is the one that counts.
            Ok(Changed::Stale) => Ok(self.refuse(RefusalKind::InFlight)),
            Err(error) => {
                // What the handler said is true all the same, and a refusal would bring the request back.
                telemetry::request_not_recorded(&error);
                answer
            }
        }
    }

    /// Goes on for as long as a lease while the store does not answer.
    async fn store(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        let patience = Until::new(Moment::now(), self.layer.settings.lease);
        loop {
            match self.layer.shared.store.change(owner, change).await {
                Err(error) if error.is_transient() && !patience.is_past() => {
                    telemetry::request_store_failed("completing", &error);
                    clock::sleep(PAUSE_STORING).await;
                }
                result => return result,
            }
        }
    }

    /// Waits for the one that runs. A waiter never runs: where there is no final answer it is told to come again.
    async fn wait<B: Body>(&self) -> Response<ResponseBody<B>> {
        let shared = &self.layer.shared;
        let patience = Until::new(Moment::now(), self.layer.settings.wait);
        let waiting = shared.waiters.wait_for(*self.begin.key.digest());
        let mut pause = PAUSE_FIRST;
        while !patience.is_past() {
            let mut ended = std::pin::pin!(waiting.ended.notified());
            // From here on no end is missed; the record is read after that.
            ended.as_mut().enable();
            let held = match shared.store.read(&self.begin.key).await {
                Ok(held) => held,
                Err(error) => {
                    telemetry::request_store_failed("reading", &error);
                    return self.refuse(RefusalKind::StoreUnavailable);
                }
            };
            match held.as_ref().and_then(|held| judge::look(held, &self.begin)) {
                Some(told) => return self.told(told),
                None if !held.is_some_and(|held| matches!(held.state, RequestState::Pending { .. })) => break,
                None => {}
            }
            tokio::select! {
                () = ended => {}
                () = clock::sleep(pause.min(patience.remaining())) => {}
            }
            pause = (pause * 2).min(PAUSE_LAST);
        }
        self.refuse(RefusalKind::InFlight)
    }

    fn told<B: Body>(&self, told: Begun) -> Response<ResponseBody<B>> {
        match told {
            Begun::Replay(stored) => self.replay(stored),
            Begun::Mismatch => self.refuse(RefusalKind::KeyMismatch),
            Begun::Unavailable(_) => self.refuse(RefusalKind::ResponseUnavailable),
            Begun::InFlight | Begun::Run(_) => self.refuse(RefusalKind::InFlight),
        }
    }

    fn replay<B: Body>(&self, stored: StoredResponse) -> Response<ResponseBody<B>> {
        let Ok(status) = StatusCode::from_u16(stored.status) else {
            return self.refuse(RefusalKind::ResponseUnavailable);
        };
        telemetry::request_ended("replayed");
        let mut response = Response::new(ResponseBody::whole(stored.body.into()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        for (name, value) in stored.headers {
            // What was a header once is one again.
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.append(name, value);
            }
        }
        headers.insert(&self.layer.settings.marker, TRUE);
        response
    }

    fn refuse<B: Body>(&self, kind: RefusalKind) -> Response<ResponseBody<B>> {
        let refusal = Refusal::new(kind);
        telemetry::request_ended(refusal.code());
        self.layer.settings.refuse(refusal).map(ResponseBody::whole)
    }
}
