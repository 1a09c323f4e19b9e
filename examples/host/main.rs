//! A small workflow host: whole, and driven over HTTP.
//!
//! Shows: both layers and the witness in one program. A `POST` that is sent again under its `Idempotency-Key` is answered
//! again and starts no second run; an effect of a run is performed under one identity however often the run is executed;
//! and `GET /runs/{runId}/effects` tells a tenant what a run did. It speaks OpenWOP 2.0 as far as its discovery document
//! says, so that a conformance suite can drive it.
//!
//! Run: `HOST_API_KEYS=acme=a-long-random-key cargo run --example host`, then
//!
//! ```text
//! curl -i localhost:8742/runs -H 'Authorization: Bearer a-long-random-key' \
//!     -H 'Idempotency-Key: 0193f0aa-3c1e-4c55-9a55-0123456789ab' -d '{"workflowId":"conformance-noop"}'
//! ```
//!
//! | variable | what it says | unless set |
//! | --- | --- | --- |
//! | `HOST_ADDR` | where to listen | `127.0.0.1:8742` |
//! | `HOST_LEDGER` | a path of an SQLite file, or `postgres://…` | a file beside the program |
//! | `HOST_API_KEYS` | `tenant=key,…`; a tenant may have several | the host does not start |
//! | `HOST_TEST_SEAMS` | `1` mounts the test seams: for tests only, they call any address they are given | off |
//!
//! You will see: 201 and a run id; the same command again gives the same answer, marked `openwop-idempotent-replay: true`.
//!
//! Where to read on: [`runs`] has the handlers, [`effects`] the one annotated effect, [`store`] the host's own table.

mod app;
mod auth;
mod config;
mod discovery;
mod effects;
mod runs;
mod seams;
mod store;
mod witness;
mod workflows;

use std::{error::Error, sync::Arc, time::Duration};

use tokio::net::TcpListener;

use config::Config;

/// How long requests and effects that run have when the host is asked to end.
const DEADLINE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = Config::from_environment()?;
    let listener = TcpListener::bind(&config.address).await?;
    let host = Arc::new(app::Host::open(config).await?);
    // What a crash interrupted goes on; what it had performed is not performed again.
    effects::resume(&host).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app::router(&host)).with_graceful_shutdown(stop_signal()).await?;
    host.executor.drain(DEADLINE).await;
    Ok(())
}

/// Resolves with Ctrl-C or SIGTERM.
async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // Without a way to be told, it runs on.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
