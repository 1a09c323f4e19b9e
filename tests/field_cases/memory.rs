//! The ledger in memory where there are several processes.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use effectual::MemoryLedger;

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

/// It cannot know of other processes, and says in every build what they would do.
#[test]
fn f63_the_ledger_in_memory_warns_of_other_processes() {
    let heard = Heard::default();
    let writer = heard.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || drop(MemoryLedger::new()));
    let heard = String::from_utf8(heard.0.lock().expect("not poisoned").clone()).expect("text");
    assert!(
        heard.contains("WARN") && heard.contains("another process") && heard.contains("tests only"),
        "{heard}"
    );
}
