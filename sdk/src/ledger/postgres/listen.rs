//! The connection on which the ledger is told what others wait for and what moved.

use std::time::Duration;

use sqlx::{
    PgConnection,
    postgres::{PgListener, PgPoolOptions},
};
use uuid::Uuid;

use super::{
    connect::{Connector, Setback},
    signals::{News, Signals},
};
use crate::clock;

/// The pause before the next try where it cannot be had.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens for ever.
pub(super) async fn serve(connector: &Connector, signals: &Signals) {
    loop {
        // Without it, waiters look again.
        drop(listen(connector, signals).await);
        clock::sleep(PAUSE).await;
    }
}

async fn listen(connector: &Connector, signals: &Signals) -> Result<(), sqlx::Error> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(connector.patience)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(connector.options.clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen_all(News::ALL.map(News::channel)).await?;
    loop {
        signals.missed();
        while let Some(told) = listener.try_recv().await? {
            let news = News::ALL.into_iter().find(|news| news.channel() == told.channel());
            if let (Some(news), Ok(head)) = (news, Uuid::try_parse(told.payload())) {
                signals.heard(news, head);
            }
        }
    }
}

/// Tells every ledger that listens, this one included.
pub(super) async fn tell(connection: &mut PgConnection, news: News, heads: &[Uuid]) -> Result<(), Setback> {
    let told = sqlx::query("SELECT FROM unnest($2::uuid[]) AS told(head), pg_notify($1, told.head::text)")
        .bind(news.channel())
        .bind(heads)
        .execute(connection);
    told.await.map(drop).map_err(|error| Setback::of(&error))
}
