//! What the library takes from the machine beside time: tasks, threads of its own, randomness. In the crate's own tests
//! a simulated machine can take the real one's place, which `clock` asks too.

#[cfg(test)]
pub(crate) mod simulated;

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{runtime::Handle, task::JoinHandle};

#[cfg(test)]
pub(crate) use self::simulated::{Machine, machine};

/// Where tasks run.
#[derive(Clone)]
pub(crate) enum Runtime {
    Tokio(Handle),
    #[cfg(test)]
    Simulated(std::sync::Arc<dyn Machine>),
}

impl Runtime {
    /// The runtime that the caller is in, if it is in one.
    pub(crate) fn current() -> Option<Self> {
        #[cfg(test)]
        if let Some(machine) = machine() {
            return Some(Self::Simulated(machine));
        }
        Handle::try_current().ok().map(Self::Tokio)
    }

    pub(crate) fn spawn<F>(&self, work: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match self {
            Self::Tokio(handle) => Task::Tokio(handle.spawn(work)),
            #[cfg(test)]
            Self::Simulated(machine) => Task::Simulated(simulated::spawn(&**machine, work)),
        }
    }
}

/// A task that runs, awaited or not; it resolves when its future is gone.
pub(crate) enum Task<T> {
    Tokio(JoinHandle<T>),
    #[cfg(test)]
    Simulated(simulated::Joining<T>),
}

/// A task that ended without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    Panicked,
    /// It was aborted, or its runtime is gone.
    Cancelled,
}

impl<T> Task<T> {
    /// Drops its future as soon as it lets go of its thread.
    pub(crate) fn abort(&self) {
        match self {
            Self::Tokio(task) => task.abort(),
            #[cfg(test)]
            Self::Simulated(task) => task.abort(),
        }
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, Gone>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Tokio(task) => Pin::new(task)
                .poll(cx)
                .map_err(|error| if error.is_panic() { Gone::Panicked } else { Gone::Cancelled }),
            #[cfg(test)]
            Self::Simulated(task) => Pin::new(task).poll(cx),
        }
    }
}

/// Starts `work` on a thread and a runtime of its own, which nothing else can block or drop.
pub(crate) fn on_own_thread<F>(name: &'static str, work: impl FnOnce(Runtime) -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    #[cfg(test)]
    if let Some(machine) = machine() {
        let runtime = Runtime::Simulated(machine);
        drop(runtime.spawn(work(runtime.clone())));
        return;
    }
    let live = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime with a timer and nothing else needs no resource that can be missing");
        runtime.block_on(work(Runtime::Tokio(runtime.handle().clone())));
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(live)
        .expect("the system gives the executor a thread");
}

/// Sixteen bytes that nobody else has.
pub(crate) fn random() -> [u8; 16] {
    #[cfg(test)]
    if let Some(machine) = machine() {
        return machine.random();
    }
    uuid::Uuid::new_v4().into_bytes()
}

/// A number from 0 to below 1.
pub(crate) fn share() -> f64 {
    let bytes = random();
    // The first four bytes of a UUID are random throughout.
    let number = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    f64::from(number) / (f64::from(u32::MAX) + 1.0)
}
