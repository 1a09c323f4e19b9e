//! The place of a simulated machine: one for each thread at a time, while that machine's code runs.

use std::{
    any::Any,
    cell::RefCell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::sync::oneshot;

use super::Gone;

pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A machine with clocks, a scheduler and a source of randomness of its own.
pub(crate) trait Machine: Send + Sync {
    /// Its monotonic clock, from any start.
    fn monotonic(&self) -> Duration;
    /// Its wall clock, in milliseconds since the Unix epoch.
    fn wall_ms(&self) -> i64;
    /// Resolves after this long by its monotonic clock.
    fn sleep(&self, duration: Duration) -> Work;
    /// Takes a task; what it gives drops the task's future the next time that the task is scheduled.
    fn spawn(&self, work: Work) -> Box<dyn Fn() + Send + Sync>;
    fn random(&self) -> [u8; 16];
    /// A task panicked with this.
    fn panicked(&self, why: &(dyn Any + Send));
}

thread_local! {
    static MACHINE: RefCell<Option<Arc<dyn Machine>>> = const { RefCell::new(None) };
}

/// The machine whose code this is, if that is a simulated one.
pub(crate) fn machine() -> Option<Arc<dyn Machine>> {
    // Absent also while the thread's locals are dropped.
    MACHINE.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Does something as a machine's own code.
pub(crate) fn enter<R>(machine: Arc<dyn Machine>, work: impl FnOnce() -> R) -> R {
    /// Puts back what was there, also when `work` panics.
    struct Leave(Option<Arc<dyn Machine>>);
    impl Drop for Leave {
        fn drop(&mut self) {
            MACHINE.set(self.0.take());
        }
    }
    let _leave = Leave(MACHINE.replace(Some(machine)));
    work()
}

/// A task of a simulated machine.
pub(crate) struct Joining<T> {
    end: oneshot::Receiver<Result<T, Gone>>,
    abort: Box<dyn Fn() + Send + Sync>,
}

impl<T> Joining<T> {
    pub(super) fn abort(&self) {
        (self.abort)();
    }
}

impl<T> Future for Joining<T> {
    type Output = Result<T, Gone>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.end).poll(cx).map(|end| end.unwrap_or(Err(Gone::Cancelled)))
    }
}

/// A future whose end is told once it is gone.
struct Telling<F: Future> {
    // In this order: the future is dropped before the end that its drop tells.
    work: Option<Pin<Box<F>>>,
    end: Option<oneshot::Sender<Result<F::Output, Gone>>>,
}

impl<F: Future> Unpin for Telling<F> {}

impl<F: Future> Future for Telling<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(work) = self.work.as_mut() else { return Poll::Ready(()) };
        let end = match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Ok(value),
            Err(why) => {
                if let Some(machine) = machine() {
                    machine.panicked(&*why);
                }
                Err(Gone::Panicked)
            }
        };
        self.work = None;
        if let Some(told) = self.end.take() {
            // Nobody may wait for it.
            drop(told.send(end));
        }
        Poll::Ready(())
    }
}

pub(super) fn spawn<F>(machine: &dyn Machine, work: F) -> Joining<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (told, end) = oneshot::channel();
    let abort = machine.spawn(Box::pin(Telling { work: Some(Box::pin(work)), end: Some(told) }));
    Joining { end, abort }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    };

    use super::*;
    use crate::environment::Runtime;

    /// Keeps one task and runs it when told.
    #[derive(Default)]
    struct Slow(Arc<Mutex<Option<Work>>>);

    impl Machine for Slow {
        fn monotonic(&self) -> Duration {
            Duration::from_secs(7)
        }
        fn wall_ms(&self) -> i64 {
            7_000
        }
        fn sleep(&self, _: Duration) -> Work {
            Box::pin(std::future::pending())
        }
        fn spawn(&self, work: Work) -> Box<dyn Fn() + Send + Sync> {
            let task = self.0.clone();
            *task.lock().expect("no panic") = Some(work);
            Box::new(move || drop(task.lock().expect("no panic").take()))
        }
        fn random(&self) -> [u8; 16] {
            [7; 16]
        }
        fn panicked(&self, _: &(dyn Any + Send)) {}
    }

    struct Sets(Arc<AtomicBool>);

    impl Drop for Sets {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn a_task_is_gone_when_its_end_is_told() {
        for panics in [false, true] {
            let (slow, gone) = (Arc::new(Slow::default()), Arc::new(AtomicBool::new(false)));
            let sets = Sets(gone.clone());
            let task = enter(slow.clone(), || {
                assert_eq!(crate::environment::random(), [7; 16]);
                Runtime::current().expect("a machine").spawn(async move {
                    let _sets = sets;
                    assert!(!panics, "a test's panic");
                })
            });
            assert!(machine().is_none());
            let work = slow.0.lock().expect("no panic").take().expect("a task");
            work.await;
            let end = task.await;
            assert_eq!((gone.load(Ordering::Relaxed), end.is_ok()), (true, !panics));
        }
    }

    #[tokio::test]
    async fn an_aborted_task_is_cancelled() {
        let slow = Arc::new(Slow::default());
        let task = enter(slow, || Runtime::current().expect("a machine").spawn(std::future::pending::<()>()));
        task.abort();
        assert_eq!(task.await, Err(Gone::Cancelled));
    }
}
