//! Waiting for a condition: by asking again until a deadline, never by sleeping and hoping.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often a condition is asked again.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// Asks `condition` until it gives a value. `None` when `limit` has passed.
pub async fn for_value<T>(limit: Duration, mut condition: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    let mut ticks = interval(ASK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(value) = condition().await {
            return Some(value);
        }
        if Instant::now() >= deadline {
            return None;
        }
    }
}

/// Asks `condition` until it holds.
///
/// # Panics
///
/// When `limit` has passed, naming `what` was waited for.
pub async fn until(what: &str, limit: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let held = for_value(limit, async || condition().await.then_some(())).await;
    assert!(held.is_some(), "waited {limit:?} for: {what}");
}

/// Asks `condition`, which does not wait for anything itself, until it holds. For the body of an effect, whose own timeout
/// is its limit.
pub async fn until_true(mut condition: impl FnMut() -> bool) {
    let mut ticks = interval(ASK_EVERY);
    while !condition() {
        ticks.tick().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn asks_again_until_it_holds() {
        let mut asked = 0;
        let condition = async || {
            asked += 1;
            (asked == 3).then_some(asked)
        };
        assert_eq!(for_value(Duration::from_secs(60), condition).await, Some(3));
    }

    #[tokio::test]
    #[should_panic(expected = "for: the end of time")]
    async fn gives_up_by_name() {
        until("the end of time", Duration::ZERO, async || false).await;
    }
}
