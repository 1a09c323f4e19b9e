//! The ledger's own thread, which a blocked executor cannot starve.

use std::{
    sync::{Arc, Mutex},
    thread,
};

use sqlx::SqliteConnection;
use tokio::{
    runtime,
    sync::{Notify, oneshot, watch},
};

use super::{
    Ends, Inner, SqliteLedger, begin::Opener, checkpoint, columns::Statements, io::Io, open, read,
    settings::Settings, sweep,
};
use crate::ledger::{LedgerError, LedgerErrorKind, writer};

/// Opens the file on a thread of its own and leaves that thread to serve it.
pub(super) async fn start(settings: Settings) -> Result<SqliteLedger, LedgerError> {
    let (opened, open) = oneshot::channel();
    let spawned = thread::Builder::new().name("effectual-sqlite".to_owned()).spawn(move || {
        match runtime::Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime.block_on(live(Arc::new(settings), opened)),
            Err(error) => drop(opened.send(Err(no_thread(error)))),
        }
    });
    spawned.map_err(no_thread)?;
    open.await
        .map_err(|_| LedgerError::new(LedgerErrorKind::Closed, "its thread ended while it was opened"))?
}

fn no_thread(error: std::io::Error) -> LedgerError {
    LedgerError::new(LedgerErrorKind::Unavailable, "the ledger's thread cannot be started").with_source(error)
}

async fn live(settings: Arc<Settings>, opened: oneshot::Sender<Result<SqliteLedger, LedgerError>>) {
    let conn = match open::open(&settings).await {
        Ok(conn) => conn,
        Err(error) => return drop(opened.send(Err(error))),
    };
    let (queue, intake) = writer::queue(settings.limits);
    let (reads, asked) = read::queue();
    let (lists, listed) = read::queue();
    let (sweeps, asked_to_sweep) = sweep::queue();
    #[cfg(feature = "tower")]
    let (requests, requested) = super::requests::queue();
    let (done, ended) = watch::channel(());
    let opener = Opener {
        settings: Arc::clone(&settings),
        statements: Arc::new(Statements::new()),
        progress: Arc::default(),
    };
    let ends = Mutex::new(Some(Ends {
        queue,
        reads,
        lists,
        sweeps,
        opener: opener.clone(),
        #[cfg(feature = "tower")]
        requests,
    }));
    let ledger = SqliteLedger {
        inner: Arc::new(Inner {
            path: settings.path.clone(),
            #[cfg(feature = "tower")]
            clock_offset_ms: settings.clock_offset_ms,
            ends,
            ended,
        }),
    };
    // Where nobody waits any more the ledger is dropped here, and what follows ends at once.
    drop(opened.send(Ok(ledger)));
    #[cfg(feature = "tower")]
    let beside = super::requests::serve(settings, Arc::clone(&opener.progress), requested);
    let effects = serve(opener, conn, &intake, [asked, listed], asked_to_sweep);
    #[cfg(feature = "tower")]
    tokio::join!(effects, beside);
    #[cfg(not(feature = "tower"))]
    effects.await;
    drop(done);
}

async fn serve(
    shared: Opener,
    conn: SqliteConnection,
    intake: &writer::Intake,
    [asked, listed]: [read::Asked; 2],
    asked_to_sweep: sweep::Asked,
) {
    let Opener { settings, statements, progress } = shared;
    let stop = Arc::new(Notify::new());
    let mut io = Io::new(Arc::clone(&settings), statements, Arc::clone(&progress), conn);
    let sweeping = sweep::serve(Arc::clone(&settings), Arc::clone(&progress), asked_to_sweep);
    let callers = async {
        let reads = read::serve(Arc::clone(&settings), asked);
        let lists = read::serve(Arc::clone(&settings), listed);
        tokio::join!(writer::serve(intake, &mut io), reads, lists, sweeping);
        stop.notify_one();
    };
    tokio::join!(callers, checkpoint::run(Arc::clone(&settings), progress, Arc::clone(&stop)));
    io.close().await;
}
