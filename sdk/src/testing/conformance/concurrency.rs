//! Many callers at once.

use std::pin::Pin;

use super::support::{LONG_MS, again, claim, history, join_all, request, success, win};
use crate::{
    Ledger,
    identity::EffectId,
    ledger::{
        Change, Changed, Claim, ClaimRequest, Owner,
        record::{EffectRecord, State},
    },
};

type Caller<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Of 64 claims of one effect at once one wins, and the others are told that it may act.
pub async fn of_64_claims_at_once_one_wins(ledger: &dyn Ledger) {
    let request = request();
    let requests: Vec<_> = (0..64).map(|_| again(&request)).collect();
    let answers =
        join_all(requests.iter().map(|request| Box::pin(claim(ledger, request)) as Caller<'_, _>).collect())
            .await;
    let won = answers.iter().filter(|claim| matches!(claim, Claim::Won { .. })).count();
    let in_flight = answers.iter().filter(|claim| matches!(claim, Claim::InFlight { .. })).count();
    assert_eq!((won, in_flight), (1, 63));
    let row = history(ledger, &request.id).await;
    assert_eq!((row.effect.attempt, row.effect.revision, row.closed.len()), (1, 1, 0), "one write");
}

/// What one caller of a crowd asked for, and what it must be told.
enum Asked {
    Settle(EffectRecord),
    Renew(EffectRecord),
    Claim(ClaimRequest),
    Read(EffectId),
}

/// Claims, settles, renewals and reads of many effects, some of the same, all at once: each gets the answer to its own
/// question.
pub async fn a_crowd_of_everything_is_answered_one_by_one(ledger: &dyn Ledger) {
    let mut crowd = Vec::new();
    for _ in 0..32 {
        let settled = win(ledger, &request()).await;
        let renewed = win(ledger, &request()).await;
        let fresh = request();
        crowd.push(Asked::Read(settled.id.clone()));
        crowd.push(Asked::Settle(settled));
        crowd.push(Asked::Renew(renewed));
        crowd.extend([fresh.clone(), again(&fresh)].map(Asked::Claim));
    }
    let wins =
        join_all(crowd.iter().map(|asked| Box::pin(ask(ledger, asked)) as Caller<'_, _>).collect()).await;
    assert_eq!(wins.into_iter().filter(|won| *won).count(), 32, "each fresh effect was won once");
    for asked in &crowd {
        let (id, state) = match asked {
            Asked::Settle(record) => (&record.id, State::Completed),
            Asked::Renew(record) => (&record.id, State::Claimed),
            Asked::Claim(request) => (&request.id, State::Claimed),
            Asked::Read(_) => continue,
        };
        assert_eq!(history(ledger, id).await.effect.state, state);
    }
}

/// Asks, checks that the answer is about the effect that was asked for, and says whether a claim was won.
async fn ask(ledger: &dyn Ledger, asked: &Asked) -> bool {
    let (record, change) = match asked {
        Asked::Settle(record) => (record, success(record.id.digest())),
        Asked::Renew(record) => (record, Change::Renew { lease_ms: LONG_MS * 2 }),
        Asked::Read(id) => {
            assert_eq!(history(ledger, id).await.effect.id, *id);
            return false;
        }
        Asked::Claim(request) => match claim(ledger, request).await {
            Claim::Won { record, .. } => {
                assert_eq!((&record.id, record.token), (&request.id, request.token));
                return true;
            }
            Claim::InFlight { .. } => return false,
            claim => panic!("a fresh effect is won or in flight, not {claim:?}"),
        },
    };
    match ledger.change(&Owner::of(record), &change).await.expect("a change is answered") {
        Changed::Applied(after) => assert_eq!((&after.id, after.revision), (&record.id, record.revision + 1)),
        changed => panic!("expected to be applied, got {changed:?}"),
    }
    false
}
