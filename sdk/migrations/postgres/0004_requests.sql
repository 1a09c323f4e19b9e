-- One row for a tenant, an endpoint and a caller's idempotency key; the key itself is not kept.
-- Apart from the effects: what the host makes never meets what callers send.
CREATE DOMAIN effectual_request_state AS text
    CHECK (VALUE IN ('pending', 'final', 'unavailable', 'retryable'));
CREATE DOMAIN effectual_request_absence AS text CHECK (VALUE IN ('too_large', 'streamed'));

CREATE TABLE effectual_requests (
    -- BLAKE3 over tenant, endpoint and key.
    digest              effectual_digest PRIMARY KEY,
    tenant              text    NOT NULL,
    endpoint            text    NOT NULL,
    fingerprint         effectual_digest NOT NULL,
    principal           effectual_digest,

    state               effectual_request_state NOT NULL,
    fence               effectual_ordinal NOT NULL,
    token               uuid    NOT NULL,
    ran_before          boolean NOT NULL,
    started_at          bigint  NOT NULL,
    lease_until         bigint,
    ended_at            bigint,
    retain_until        bigint  NOT NULL,

    status              integer,
    headers             bytea,
    body                bytea,
    absent_reason       effectual_request_absence,
    revision            effectual_ordinal NOT NULL,

    -- One rule, because each is read anew as text for every statement that writes.
    CONSTRAINT state_is_whole CHECK (
        (state = 'pending') = (lease_until IS NOT NULL) AND (state = 'pending') = (ended_at IS NULL)
        AND num_nonnulls(status, headers, body) = CASE state WHEN 'final' THEN 3 ELSE 0 END
        AND (state = 'unavailable') = (absent_reason IS NOT NULL))
)
WITH (fillfactor = 60);

CREATE INDEX effectual_requests_by_retention ON effectual_requests (retain_until);
