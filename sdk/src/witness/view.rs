//! What the witness shows: closed objects, and nothing of arguments, payloads or credentials.

use serde::Serialize;

use crate::{
    identity::{EffectId, InvocationId, NodeId, RunId},
    ledger::RunRow,
};

/// The JSON Schema (2020-12) of the projection.
pub const PROJECTION_SCHEMA: &str = include_str!("../../schemas/effect-ledger-projection.schema.json");

/// What `nodeId` shows of an effect that was called in a run outside any node.
pub const OUTSIDE_ANY_NODE: &str = "outside-any-node";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    effect_id: &'a EffectId,
    node_id: &'a str,
    attempt: u32,
    keying: &'static str,
    state: &'static str,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    invocation_id: Option<&'a InvocationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_key: Option<&'a str>,
}

impl<'a> Shown<'a> {
    fn new(row: &'a RunRow) -> Self {
        Self {
            effect_id: &row.effect,
            node_id: row.node.as_ref().map_or(OUTSIDE_ANY_NODE, NodeId::as_str),
            attempt: row.attempt,
            keying: row.keying.as_str(),
            state: row.state.as_str(),
            at: date_time(row.at),
            invocation_id: row.invocation.as_ref(),
            provider_key: Some(row.provider_key.as_str()).filter(|key| !looks_like_a_credential(key)),
        }
    }
}

/// Writes `{"runId":…,"effects":[…]}` in pieces, so that a long list is never in memory whole.
pub(super) struct Writer {
    is_first: bool,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self { is_first: true }
    }

    pub(super) fn begin(run: &RunId) -> String {
        // A run id holds nothing that JSON escapes.
        format!("{{\"runId\":\"{run}\",\"effects\":[")
    }

    pub(super) fn add(&mut self, text: &mut String, rows: &[RunRow]) {
        for row in rows {
            if !std::mem::take(&mut self.is_first) {
                text.push(',');
            }
            // Identifiers, numbers and names are JSON whatever they hold.
            text.push_str(&serde_json::to_string(&Shown::new(row)).unwrap_or_default());
        }
    }

    pub(super) fn end() -> &'static str {
        "]}"
    }
}

/// Whether a scanner for secrets, or a reader, would take this for one. Our own keys are digests; one that a body brought
/// along may be anything, and is then not shown at all.
fn looks_like_a_credential(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    let marked = ["secret", "bearer", "password", "token", "api_key", "apikey"];
    let prefixed = ["sk-", "sk_", "pk_", "rk_", "ghp_", "xox", "akia", "eyj"];
    !key.bytes().all(|byte| byte.is_ascii_graphic())
        || marked.iter().any(|mark| lower.contains(mark))
        || prefixed.iter().any(|prefix| lower.starts_with(prefix))
        || lower.contains("sk-")
}

/// Milliseconds since the Unix epoch as RFC 3339 writes them, in UTC. What four digits of a year do not hold is shown as
/// the nearest moment that they do.
fn date_time(at_ms: i64) -> String {
    const FIRST_MS: i64 = -62_167_219_200_000;
    const LAST_MS: i64 = 253_402_300_799_999;
    let at_ms = at_ms.clamp(FIRST_MS, LAST_MS);
    let (days, of_day) = (at_ms.div_euclid(86_400_000), at_ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// The date that is so many days after 1970-01-01: years are counted from March, so that the leap day comes last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339_writes_them() {
        for (at_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_798_761_599_001, "2026-12-31T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (i64::MIN, "0000-01-01T00:00:00.000Z"),
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(date_time(at_ms), text);
        }
    }

    #[test]
    fn what_looks_like_a_credential_is_not_shown() {
        for key in [
            "sk-abcdefgh12345678",
            "sk_live_abc",
            "my-secret-1",
            "Bearer x",
            "a b",
            "xoxb-1",
            "é",
            "k-sk-live99",
        ] {
            assert!(looks_like_a_credential(key), "{key}");
        }
        for key in ["0193f0aa-3c1e-4c55-9a55-0123456789ab", "order-1042", &"ab".repeat(32)] {
            assert!(!looks_like_a_credential(key), "{key}");
        }
    }
}
