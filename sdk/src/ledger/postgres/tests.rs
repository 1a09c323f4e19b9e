//! What the statements rely on, without a database.

use std::sync::Arc;

use super::{
    encode, migrate,
    rows_usual::{self, ClaimRow},
    sql, sql_usual,
    table::{AttemptRow, Column, EffectRow, EvidenceRow, Role, Table, TouchRow},
    time::{CLOCK, limit, may_be_symbolic, resolve},
};
use crate::{
    Keying, RecoveryClass,
    identity::EffectId,
    ledger::{
        Change, ClaimRequest, Owner, change,
        change::Ended,
        claim,
        record::{
            AttemptToken, AttemptVerdict, EffectRecord, OutcomeBody, OutcomeKind, Payload, Place, State,
        },
        transition::Write,
    },
};

const NOW: i64 = 1_800_000_000_000;

fn request() -> ClaimRequest {
    ClaimRequest {
        id: EffectId::parse(format!("acme/{}", "ab".repeat(32))).expect("a valid effect id"),
        operation: "refund".into(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: crate::ledger::identities::Identities::default(),
        readable: Some("order=…1042".into()),
        provider: Some("stripe".into()),
        provider_key: "key".into(),
        fingerprints: Arc::default(),
        input: None,
        class: RecoveryClass::Resend,
        can_perform: true,
        can_look_up: false,
        can_poll: false,
        resend_window_ms: None,
        resend_quiet_ms: None,
        token: AttemptToken([1; 16]),
        lease_ms: 60_000,
        attempt_timeout_ms: 10_000,
        place: Place::default(),
    }
}

fn first(now: i64) -> EffectRecord {
    claim::judge(None, &request(), now).write.expect("a first claim").effect.as_ref().clone()
}

fn ended(verdict: AttemptVerdict) -> Ended {
    let class = Some(RecoveryClass::Hold);
    Ended {
        verdict,
        class,
        send_digest: Some([3; 32]),
        key_taken: true,
        first_send_ago_ms: Some(40),
        acts_for_ms: 70,
    }
}

fn settle(verdict: AttemptVerdict, kind: OutcomeKind, retain_ms: i64) -> Change {
    let body = OutcomeBody::Payload(Payload { codec: "json/1".into(), bytes: b"1".to_vec() });
    Change::Settle { ended: ended(verdict), kind, body, provider_replay: false, conclusive: false, retain_ms }
}

fn changes() -> Vec<Change> {
    let end =
        |verdict, keep_claim| Change::End { ended: ended(verdict), keep_claim, not_before_ms: Some(90) };
    let mut changes = vec![
        Change::Renew { lease_ms: 5_000 },
        Change::Open {
            token: AttemptToken([2; 16]),
            class: RecoveryClass::Hold,
            lease_ms: 6_000,
            attempt_timeout_ms: 7_000,
            doubt_cleared: false,
        },
        settle(AttemptVerdict::Performed, OutcomeKind::Success, 86_400_000),
        settle(AttemptVerdict::Refused, OutcomeKind::Refusal, 86_400_000),
        Change::Accept { handle: "job".into(), poll_after_ms: 30 },
        Change::Label,
    ];
    for verdict in [AttemptVerdict::NotPerformed, AttemptVerdict::Unknown] {
        changes.extend([end(verdict, true), end(verdict, false)]);
    }
    changes
}

/// What a change of `record` stores, judged at `now`.
fn stored(record: &EffectRecord, change: &Change, now: i64) -> Option<Write> {
    change::judge(Some(record), &Owner::of(record), change, now).write
}

/// Every row that up to three changes after a first claim lead to.
fn rows() -> Vec<EffectRecord> {
    let mut rows = vec![first(NOW - 100_000)];
    let mut newest = rows.clone();
    for step in 1..=3 {
        let now = NOW - 100_000 + step * 1_000;
        let next =
            newest.iter().flat_map(|row| changes().into_iter().map(move |change| stored(row, &change, now)));
        newest = next.flatten().map(|write| Arc::unwrap_or_clone(write.effect)).collect();
        rows.extend(newest.clone());
    }
    rows
}

#[test]
fn a_change_judged_at_the_symbolic_time_is_the_change_judged_at_the_real_one() {
    let mut compared = 0;
    for row in rows() {
        for change in changes().iter().filter(|change| may_be_symbolic(&row, change)) {
            let symbolic = stored(&row, change, CLOCK).map(|mut write| {
                resolve(Arc::make_mut(&mut write.effect), NOW);
                write.effect
            });
            assert_eq!(
                symbolic,
                stored(&row, change, NOW).map(|write| write.effect),
                "{change:?} of {row:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 1_000, "{compared}");
}

/// If this fails, the judgement no longer compares times there, and [`may_be_symbolic`] can go.
#[test]
fn an_end_beside_an_older_doubt_may_not_be_judged_at_the_symbolic_time() {
    let open = |row: &EffectRecord| stored(row, &changes()[1], NOW).expect("opened").effect;
    let mut older = ended(AttemptVerdict::Unknown);
    older.acts_for_ms = 1_000_000;
    let end = |ended| Change::End { ended, keep_claim: true, not_before_ms: None };
    let row = open(&stored(&first(NOW), &end(older), NOW).expect("ended").effect);
    let change = end(ended(AttemptVerdict::Unknown));
    assert!(!may_be_symbolic(&row, &change));
    let mut symbolic = stored(&row, &change, CLOCK).expect("ended").effect;
    resolve(Arc::make_mut(&mut symbolic), NOW);
    let real = stored(&row, &change, NOW).expect("ended").effect;
    assert_ne!(symbolic.doubt, real.doubt);
}

#[test]
fn what_lasts_for_ever_is_no_symbolic_time() {
    for retain_ms in [i64::MAX, i64::MAX - CLOCK, 1 << 60, (1 << 61) + 7] {
        let change = settle(AttemptVerdict::Performed, OutcomeKind::Success, retain_ms);
        for now in [CLOCK, NOW] {
            let mut settled = stored(&first(NOW), &change, now).expect("settled").effect;
            if now == CLOCK {
                resolve(Arc::make_mut(&mut settled), NOW)
            } else {
                limit(Arc::make_mut(&mut settled))
            }
            let once = settled.clone();
            resolve(Arc::make_mut(&mut settled), NOW + 1);
            assert_eq!(settled, once);
            assert_eq!(
                settled.outcome.as_ref().map(|kept| kept.retain_until),
                Some(i64::MAX),
                "{retain_ms} at {now}"
            );
        }
    }
}

/// A settlement hands over only the columns that it sets: of all others the row keeps what it has.
#[test]
fn a_settlement_changes_nothing_beside_its_columns() {
    let mut settlements = 0;
    for row in rows() {
        for change in changes() {
            let Some(write) = stored(&row, &change, NOW).filter(|write| write.is_settlement_of(&row)) else {
                continue;
            };
            let next = &*write.effect;
            let settled = EffectRecord {
                first_send_at: next.first_send_at,
                state: next.state,
                lease_until: next.lease_until,
                end: next.end.clone(),
                outcome: next.outcome.clone(),
                revision: next.revision,
                ..row.clone()
            };
            assert_eq!(*next, settled);
            settlements += 1;
        }
    }
    assert!(settlements > 0, "settling a claim is a settlement");
}

/// What their statements write of themselves is what was judged.
#[test]
fn a_first_claim_and_its_settlement_are_what_their_statements_take_them_for() {
    let claimed = first(CLOCK);
    assert!(rows_usual::is_first_claim(&claimed));
    // Of the class that its end says.
    let claimed = EffectRecord { class: RecoveryClass::Hold, ..claimed };
    let [success, refusal] = [
        settle(AttemptVerdict::Performed, OutcomeKind::Success, 86_400_000),
        settle(AttemptVerdict::Refused, OutcomeKind::Refusal, 86_400_000),
    ]
    .map(|change| stored(&claimed, &change, CLOCK).expect("settled"));
    assert!(rows_usual::is_settlement(&success, &claimed) && rows_usual::is_settlement(&refusal, &claimed));
    // Not at a real time, not of a row that a label or a look-up left in another state, not with another verdict.
    let later = stored(&claimed, &changes()[2], NOW).expect("settled");
    assert!(!rows_usual::is_settlement(&later, &claimed));
    let escaped = EffectRecord { state: State::Escaped, ..claimed.clone() };
    assert!(!rows_usual::is_settlement(&success, &escaped));
    let found =
        stored(&claimed, &settle(AttemptVerdict::Unknown, OutcomeKind::Success, 1), CLOCK).expect("settled");
    assert!(!rows_usual::is_settlement(&found, &claimed));
}

/// A first claim hands over only the columns that it sets: all others have to be null or their default.
#[test]
fn a_first_claim_sets_no_column_of_later() {
    let record = first(NOW);
    let row = format!("{:?}", encode::effect(&record));
    for column in EffectRow::COLUMNS.iter().filter(|column| column.role == Role::Later) {
        let (unset, default) = (format!(" {}: None", column.name), format!(" {}: Some(false)", column.name));
        assert!(row.contains(&unset) || row.contains(&default), "{} in {row}", column.name);
    }
}

/// Every column of the schema is one that the statements know, or one of those named here.
#[test]
fn the_tables_are_those_of_the_schema() {
    const SCHEMA: &str = concat!(
        include_str!("../../../migrations/postgres/0001_effects.sql"),
        include_str!("../../../migrations/postgres/0004_requests.sql")
    );
    let elsewhere = ["seq"];
    let is_new = |column: &&Column| EffectRow::COLUMNS.iter().all(|known| known.name != column.name);
    let effects: Vec<_> =
        EffectRow::COLUMNS.iter().chain(ClaimRow::COLUMNS.iter().filter(is_new)).copied().collect();
    let tables: [(&str, &[Column]); 4] = [
        ("effectual_effects", &effects),
        ("effectual_attempts", AttemptRow::COLUMNS),
        ("effectual_touches", TouchRow::COLUMNS),
        ("effectual_evidence", EvidenceRow::COLUMNS),
    ];
    let domains: Vec<_> = SCHEMA
        .lines()
        .filter_map(|line| line.strip_prefix("CREATE DOMAIN ")?.split_once(" AS "))
        .map(|(domain, rest)| (domain, rest.split_whitespace().next().unwrap_or(rest)))
        .collect();
    assert_eq!(domains.iter().map(|(domain, _)| *domain).collect::<Vec<_>>(), migrate::DOMAINS);
    for (table, columns) in tables {
        let (_, rest) = SCHEMA.split_once(&format!("CREATE TABLE {table} (\n")).expect("the table");
        let (body, _) = rest.split_once("\n)").expect("the table's end");
        let mut known: Vec<_> = columns.iter().filter(|column| column.role != Role::Guard).collect();
        for line in body.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     ")) {
            let mut words = line.split_whitespace();
            let (Some(name), Some(kind)) = (words.next(), words.next()) else { continue };
            if name.chars().any(|c| c.is_ascii_uppercase() || c == '-') || elsewhere.contains(&name) {
                continue;
            }
            let at = known.iter().position(|column| column.name == name);
            let column = known.remove(at.unwrap_or_else(|| panic!("{table}.{name} is not known")));
            let kind = kind.trim_end_matches(',');
            // Parameters are of the type below a domain.
            let base = domains.iter().find(|(domain, _)| *domain == kind).map_or(kind, |(_, base)| *base);
            assert_eq!(column.sql, base, "{table}.{name}");
        }
        assert!(known.is_empty(), "{table} has no {known:?}");
    }
}

#[test]
fn every_statement_pins_the_durable_commit() {
    for statement in [
        &*sql_usual::CLAIM_ONE,
        &*sql_usual::CLAIM_MANY,
        &*sql_usual::SETTLE_ONE,
        &*sql_usual::SETTLE_MANY,
        &*sql_usual::CLAIM_AMONG,
        &*sql_usual::CLAIM_PLAIN,
        &*sql_usual::CLAIM_AND_SETTLE,
        &*sql_usual::CLAIM_PLAIN_AND_SETTLE,
        &*sql::STORE_ONE,
        &*sql::STORE_MANY,
        &*sql::STORE_WITH_MORE,
        &*sql::TOUCH,
        &*sql::FORGET_DUE,
        &*sql::LOCK_TOMBSTONES,
        &*sql::FORGET_ONE,
    ] {
        assert!(statement.starts_with("WITH clock AS MATERIALIZED"), "{statement}");
        assert!(statement.contains("set_config('synchronous_commit'"), "{statement}");
    }
}
