//! Nothing of the user's data in spans, events or error texts. A program of its own: it listens to everything that is
//! traced in the process.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use effectual::{EffectContext, Executor, Ledger, effect};
use effectual_tests::{
    ledgers,
    scripted::{Act, Done, Scripted, ScriptedError},
};

const CANARIES: [&str; 3] = ["canary-key-3b1c", "canary-argument-91fe", "canary-handle-77aa"];

/// Everything that was traced, as text.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<u8>>>);

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Clone)]
struct Handle(Scripted, #[expect(dead_code, reason = "it is there to be leaked")] &'static str);

#[effect(keying = business_identity, retry(attempts = 2, base = "1ms"))]
async fn leaky(
    cx: &EffectContext,
    #[key] order: String,
    note: String,
    #[skip] handle: Handle,
) -> effectual::Result<Done, ScriptedError> {
    Ok(handle.0.send(cx, &format!("{order} {note}")).await?)
}

/// What the errors said, and the provider keys that were presented.
async fn calls(ledger: Arc<dyn Ledger>) -> (Vec<String>, Vec<String>) {
    let executor = Executor::builder(ledger).build().expect("a valid set-up");
    let scope = executor.tenant("acme").expect("a tenant");
    let (mut said, mut keys) = (Vec::new(), Vec::new());
    for act in [Act::Perform, Act::PerformAndLose, Act::Refuse, Act::TooBusy(None), Act::PerformAndPanic] {
        let key = format!("{} {act:?}", CANARIES[0]);
        let handle = Handle(Scripted::forgetful([act]), CANARIES[2]);
        for note in [CANARIES[1], "another note"] {
            if let Err(error) = leaky(&scope, key.clone(), note.to_owned(), handle.clone()).await {
                said.push(format!("{error} {error:?}"));
            }
        }
        keys.extend(handle.0.keys());
    }
    said.push(format!("{executor:?} {scope:?}"));
    (said, keys)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f39_no_argument_key_or_handle_is_traced_or_said() {
    let heard = Heard::default();
    let writer = heard.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
        .with_writer(move || writer.clone())
        .init();
    // What a panic prints is the hook's, and a user's hook prints what it likes.
    std::panic::set_hook(Box::new(|_| {}));

    let (memory, sqlite) = (ledgers::memory(), ledgers::sqlite().await);
    let mut heard_of = vec![calls(memory.ledger.clone()).await, calls(sqlite.ledger.clone()).await];
    if let Some(postgres) = ledgers::postgres("secrecy of the PostgreSQL ledger's traces").await {
        heard_of.push(calls(postgres.ledger.clone()).await);
    }

    let heard = String::from_utf8(heard.0.lock().expect("not poisoned").clone()).expect("text");
    assert!(heard.contains("effect.attempt") && heard.contains("leaky"), "the spans are heard at all");
    for (said, keys) in heard_of {
        assert!(!keys.is_empty());
        let canaries = CANARIES.into_iter().chain([effectual_tests::scripted::PANIC_CANARY]);
        for canary in canaries.chain(keys.iter().map(String::as_str)) {
            assert!(!heard.contains(canary), "{canary} was traced");
            assert!(said.iter().all(|text| !text.contains(canary)), "{canary} was said");
        }
    }
}
