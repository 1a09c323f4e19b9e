//! A disk that is really full.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use effectual::{
    EffectContext, ErrorKind, Ledger, LedgerError, LedgerErrorKind, SqliteLedger, effect,
    ledger::{Change, Changed, Claim, ClaimRequest, EffectHistory, Owner, record::State},
};
use effectual_tests::{
    scripted::{Scripted, ScriptedError},
    wait::until,
};

use crate::{LIMIT, effects::*};

/// A file system of its own, of 2 MiB, in memory.
struct Disk(tempfile::TempDir);

impl Disk {
    /// `None`, and said so, where this user may not mount one.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "effectual-test"])
            .arg(folder.path())
            .stderr(std::process::Stdio::null())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(folder));
        }
        // Past the harness, which shows the output of failures only.
        let _ = writeln!(std::io::stderr(), "left out: a disk that is full (needs the right to mount one)");
        None
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0.path()).status());
    }
}

/// Takes all the room that there is.
fn fill(ballast: &Path) {
    let mut file = File::create(ballast).expect("a file");
    while file.write_all(&[7; 4096]).is_ok() {}
}

/// Counts the writes for which there was no room.
#[derive(Debug)]
struct Counting {
    ledger: SqliteLedger,
    full: AtomicU32,
}

#[async_trait::async_trait]
impl Ledger for Counting {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.ledger.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        let changed = self.ledger.change(owner, change).await;
        if changed.as_ref().is_err_and(|error| error.kind() == LedgerErrorKind::Full) {
            self.full.fetch_add(1, Ordering::SeqCst);
        }
        changed
    }

    async fn read(&self, id: &effectual::EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.ledger.read(id).await
    }

    fn name(&self) -> &'static str {
        self.ledger.name()
    }

    async fn close(&self) {
        self.ledger.close().await;
    }
}

/// Acts, takes all the room, and gives an outcome that needs some.
#[effect(keying = business_identity)]
async fn filling(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Scripted,
    #[skip] ballast: PathBuf,
) -> effectual::Result<String, ScriptedError> {
    provider.send(cx, &order.to_string()).await?;
    fill(&ballast);
    Ok("x".repeat(600_000))
}

/// The outcome waits until there is room, and so does its caller; a new call starts nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_whose_disk_is_full_when_it_settles_is_performed_once_and_stored_when_there_is_room() {
    let Some(disk) = Disk::mount() else { return };
    let ledger = SqliteLedger::open(disk.0.path().join("ledger.db")).await.expect("a ledger");
    let counting = Arc::new(Counting { ledger, full: AtomicU32::new(0) });
    let shared: Arc<dyn Ledger> = Arc::clone(&counting) as _;
    let executor = executor(&shared);
    let (receipt, scope) = receipted(&executor);
    let provider = Scripted::forgetful([]);
    let call = tokio::spawn(filling(&scope, 1, provider.clone(), disk.ballast()));
    let full = || counting.full.load(Ordering::SeqCst);
    until("the settle to find no room, twice", LIMIT, async || full() >= 2).await;
    assert!(!call.is_finished(), "an outcome is stored before it is returned");

    // As many claims as still find a free page in the log; the next one is told why nothing was started.
    let untouched = Scripted::forgetful([]);
    let mut refused = None;
    for number in 0..2_000 {
        let (_, scope) = receipted(&executor);
        let order = format!("{number}-{}", "x".repeat(2_000));
        if let Err(error) = holding(&scope, order, 5, untouched.clone()).await {
            refused = Some(error);
            break;
        }
    }
    let refused = refused.expect("a claim for which there is no room");
    assert_eq!(refused.kind(), ErrorKind::Ledger, "{refused}");
    assert!(refused.to_string().contains("full"), "{refused}");
    assert_eq!(untouched.performed(), untouched.keys().len() as u32);

    std::fs::remove_file(disk.ballast()).expect("room");
    assert_eq!(call.await.expect("no panic").expect("stored").len(), 600_000);
    assert_eq!((provider.performed(), state(&executor, &receipt).await), (1, State::Completed));
}
