//! Every span, event and field name. None of them carries an argument, a payload, a key or a caller's text.

/// The span of one call of an effect.
pub const CALL_SPAN: &str = "effect";
/// The span of one attempt.
pub const ATTEMPT_SPAN: &str = "effect.attempt";
/// The target of all events.
pub const TARGET: &str = "effectual";

/// The span of a call, in the caller's span.
pub(crate) fn call_span(operation: &'static str) -> tracing::Span {
    tracing::info_span!(
        target: TARGET,
        CALL_SPAN,
        effect.operation = operation,
        effect.id = tracing::field::Empty,
        effect.result = tracing::field::Empty,
        effect.replayed = tracing::field::Empty,
    )
}

/// The span of an attempt, inside its call's.
pub(crate) fn attempt_span(attempt: u32, fence: i64) -> tracing::Span {
    tracing::info_span!(
        target: TARGET,
        ATTEMPT_SPAN,
        effect.attempt = attempt,
        effect.fence = fence,
        effect.verdict = tracing::field::Empty,
    )
}

/// How a call ended, in the current span.
pub(crate) fn call_ended(result: &str, replayed: bool) {
    let span = tracing::Span::current();
    span.record("effect.result", result);
    span.record("effect.replayed", replayed);
}

/// Which effect the current span's call is of.
pub(crate) fn call_identified(id: &crate::EffectId) {
    tracing::Span::current().record("effect.id", tracing::field::display(id));
}

/// How an attempt ended.
pub(crate) fn attempt_ended(span: &tracing::Span, verdict: &'static str) {
    span.record("effect.verdict", verdict);
    tracing::info!(target: TARGET, parent: span, { effect.verdict = verdict }, "attempt ended");
}

/// The ledger did not answer; what is being done is tried again.
pub(crate) fn ledger_retried(doing: &'static str, error: &crate::LedgerError) {
    tracing::warn!(target: TARGET, { ledger.doing = doing, ledger.error_kind = ?error.kind() }, "the ledger did not answer; trying again");
}

/// A write of a stale owner was refused.
pub(crate) fn stale_refused(id: &crate::EffectId) {
    tracing::warn!(target: TARGET, { effect.id = %id }, "another executor has taken the effect over; the answer is kept as evidence");
}

/// A renewal failed; the lease goes on as long as it lasts.
pub(crate) fn renewal_failed(id: &crate::EffectId, error: &crate::LedgerError) {
    tracing::warn!(target: TARGET, { effect.id = %id, ledger.error_kind = ?error.kind() }, "a lease was not renewed");
}

/// Effects are kept where no other process sees them, and no later one.
pub(crate) fn kept_in_memory() {
    tracing::warn!(target: TARGET, "effects are kept in this process' memory: another process, or this one after a restart, performs them again; for tests only");
}

/// The payload codec did not seal a value; the effect is recorded without it, or was not started.
pub(crate) fn not_sealed(id: &crate::EffectId) {
    tracing::error!(target: TARGET, { effect.id = %id }, "the payload codec did not seal a value");
}

/// The payload codec did not open a stored value; the call is told that it is unreadable.
pub(crate) fn not_opened(id: &crate::EffectId) {
    tracing::error!(target: TARGET, { effect.id = %id }, "the payload codec did not open a stored value");
}

/// A pass over the ledger forgot what was past its retention.
pub(crate) fn swept(forgotten: u64, removed: u64) {
    tracing::info!(target: TARGET, { sweep.forgotten = forgotten, sweep.removed = removed }, "what is past its retention was forgotten");
}

/// A pass ended early; the next one goes on from there.
pub(crate) fn sweep_failed(error: &crate::LedgerError) {
    tracing::warn!(target: TARGET, { ledger.error_kind = ?error.kind() }, "the ledger did not forget what is past its retention; a later pass tries again");
}

/// Effects of an operation that this binary has no function for wait to be recovered. Told once an operation.
pub(crate) fn no_handler(operation: &str) {
    tracing::warn!(target: TARGET, { effect.operation = operation }, "no handler for effects that wait to be recovered; they are left as they are");
}

/// The stored arguments of an effect do not decode; it is left as it is.
pub(crate) fn input_unreadable(id: &crate::EffectId, argument: &'static str) {
    tracing::warn!(target: TARGET, { effect.id = %id, effect.argument = argument }, "the stored arguments of an effect do not decode; it is left as it is");
}

/// A pass of the recovery took up effects.
pub(crate) fn recovery_passed(taken: u64, completed: u64, escaped: u64) {
    tracing::info!(target: TARGET, { recovery.taken = taken, recovery.completed = completed, recovery.escaped = escaped }, "effects were recovered");
}

/// The file of a ledger was not closed cleanly; what was stored is in its log.
#[cfg(feature = "sqlite")]
pub(crate) fn not_closed_cleanly(error: &dyn std::error::Error) {
    tracing::warn!(target: TARGET, { ledger.error = %error }, "the ledger's file was not closed cleanly; nothing is lost");
}

/// A checkpoint failed and will be tried again.
#[cfg(feature = "sqlite")]
pub(crate) fn checkpoint_failed(error: &dyn std::error::Error) {
    tracing::debug!(target: TARGET, { ledger.error = %error }, "a checkpoint failed and will be tried again");
}

/// The span of a request with an idempotency key.
#[cfg(feature = "tower")]
pub const REQUEST_SPAN: &str = "idempotency.request";

/// The span of a request with a key: neither the key nor anything that stands for it.
#[cfg(feature = "tower")]
pub(crate) fn request_span() -> tracing::Span {
    tracing::info_span!(target: TARGET, REQUEST_SPAN, idempotency.result = tracing::field::Empty)
}

/// How a request with a key ended, in the current span: `executed`, `replayed`, or the code of a refusal.
#[cfg(feature = "tower")]
pub(crate) fn request_ended(result: &'static str) {
    tracing::Span::current().record("idempotency.result", result);
}

/// The store of request records did not answer.
#[cfg(feature = "tower")]
pub(crate) fn request_store_failed(doing: &'static str, error: &crate::LedgerError) {
    tracing::warn!(target: TARGET, { ledger.doing = doing, ledger.error_kind = ?error.kind() }, "the store of request records did not answer");
}

/// An answer was given that is not on record.
#[cfg(feature = "tower")]
pub(crate) fn request_not_recorded(error: &crate::LedgerError) {
    tracing::error!(target: TARGET, { ledger.error_kind = ?error.kind() }, "an answer was given and could not be recorded; the same key runs again once its lease has ended");
}

/// A record could not be renewed, or is another's.
#[cfg(feature = "tower")]
pub(crate) fn request_lost() {
    tracing::warn!(target: TARGET, "a request's record could not be renewed; its handler is stopped");
}

/// A request with a key has no tenant.
#[cfg(feature = "tower")]
pub(crate) fn request_without_tenant() {
    tracing::error!(target: TARGET, "a request with an idempotency key has no tenant and was refused; mount the layer inside of the authentication");
}
