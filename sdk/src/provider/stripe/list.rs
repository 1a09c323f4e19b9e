//! Reading lists to their end: a look-up that stops early would say "absent" of what it has not seen.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Deserializer, de::DeserializeOwned};

use super::{EFFECT_METADATA, client::StripeClient, error::StripeError, form::mark};
use crate::{
    identity::EffectId,
    provider::http::{HttpError, HttpErrorKind},
};

/// The largest page that Stripe gives.
const PAGE: &str = "100";

/// How many pages are read: past it the answer is an error and not a part.
const PAGES_MAX: u32 = 100;

/// By how much our clock and Stripe's may differ without an object being missed.
const CLOCK_SLACK: Duration = Duration::from_secs(3600);

/// An object that has a list.
pub(super) trait Listed: DeserializeOwned {
    const PATH: &'static str;

    /// Its id, and when it was created in seconds since the Unix epoch.
    fn place(&self) -> (&str, i64);

    fn metadata(&self) -> &BTreeMap<String, String>;

    /// Whether it is the record of a refusal.
    fn failed(&self) -> bool {
        false
    }
}

#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
    has_more: bool,
}

impl StripeClient {
    pub(super) async fn one<T: Listed>(&self, id: &str) -> Result<T, StripeError> {
        let plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !plain {
            return Err(HttpError::request("an id has letters, digits and underscores only")
                .saying_nothing()
                .into());
        }
        Ok(self.http.get(&format!("{}/{id}", T::PATH)).send().await?.json()?)
    }

    /// The whole list.
    pub(super) async fn all<T: Listed>(&self, filter: &[(&str, &str)]) -> Result<Vec<T>, StripeError> {
        let mut all = Vec::new();
        self.pages(filter, |page: Vec<T>| {
            all.extend(page);
            false
        })
        .await?;
        Ok(all)
    }

    /// The object that an effect made: of several, as from a server that does not deduplicate, one that is no refusal.
    /// `None` only if the list was read to its end, or to objects older than `since`.
    pub(super) async fn find<T: Listed>(
        &self,
        filter: &[(&str, &str)],
        effect: &EffectId,
        since: Option<SystemTime>,
    ) -> Result<Option<T>, StripeError> {
        let mark = mark(effect);
        let oldest = since.map(|since| seconds(since.checked_sub(CLOCK_SLACK).unwrap_or(UNIX_EPOCH)));
        let mut found: Option<T> = None;
        self.pages(filter, |page: Vec<T>| {
            let past = oldest.is_some_and(|oldest| is_past(&page, oldest));
            let ours = |object: &T| object.metadata().get(EFFECT_METADATA) == Some(&mark);
            for object in page.into_iter().filter(ours) {
                if found.as_ref().is_none_or(Listed::failed) {
                    found = Some(object);
                }
            }
            past || found.as_ref().is_some_and(|found| !found.failed())
        })
        .await?;
        Ok(found)
    }

    /// Reads page after page until the list ends or `enough` says so.
    async fn pages<T: Listed>(
        &self,
        filter: &[(&str, &str)],
        mut enough: impl FnMut(Vec<T>) -> bool,
    ) -> Result<(), StripeError> {
        let mut last: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut query = self.http.get(T::PATH).query("limit", PAGE);
            for (name, value) in filter {
                query = query.query(*name, *value);
            }
            if let Some(last) = &last {
                query = query.query("starting_after", last);
            }
            let Page { data, has_more } = query.send().await?.json::<Page<T>>()?;
            last = data.last().map(|object| object.place().0.to_owned());
            if enough(data) || !has_more {
                return Ok(());
            }
            if last.is_none() {
                break;
            }
        }
        let error = HttpError::new(HttpErrorKind::TooLarge).with_detail("the list did not end");
        Err(error.into())
    }
}

/// Whether everything after this page is older than `oldest`, which only a page in falling order can show.
fn is_past<T: Listed>(page: &[T], oldest: i64) -> bool {
    let times: Vec<i64> = page.iter().map(|object| object.place().1).collect();
    let falling = times.is_sorted_by(|newer, older| newer >= older) && times.first() > times.last();
    falling && times.last().is_some_and(|last| *last < oldest)
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Some servers write `null` for no metadata.
pub(super) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::stripe::Refund;

    fn page(times: &[i64]) -> Vec<Refund> {
        let refund = |created: &i64| {
            serde_json::from_value(serde_json::json!({
                "id": "re_1", "amount": 1, "currency": "usd", "created": created, "metadata": null,
            }))
        };
        times.iter().map(|created| refund(created).expect("a refund")).collect()
    }

    #[test]
    fn only_a_falling_page_shows_that_the_rest_is_older() {
        assert!(is_past(&page(&[30, 20, 20, 10]), 15));
        assert!(!is_past(&page(&[30, 20, 15]), 15));
        assert!(!is_past(&page(&[10, 20, 30]), 15), "the oldest first");
        assert!(!is_past(&page(&[30, 10, 20, 10]), 15), "no order");
        assert!(!is_past(&page(&[10, 10]), 15), "an order that cannot be seen");
        assert!(!is_past(&page(&[10]), 15));
        assert!(!is_past(&page(&[]), 15));
    }
}
