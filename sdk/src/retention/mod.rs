//! Keeping and forgetting: who forgets what is past its retention, and when.
//!
//! How long outcomes are kept is a setting of the executor, [`retention`](crate::ExecutorBuilder::retention). Past it a call gets
//! [`Expired`](crate::ErrorKind::Expired) whether or not anybody swept; sweeping makes the content go. A process sweeps when its
//! executor was given a [`RetentionPolicy`] by [`sweep`](crate::ExecutorBuilder::sweep), or when it calls [`sweep`](sweep()) itself;
//! by default nothing is deleted. [The page on retention](crate::docs::retention) has the whole of it.

mod policy;
mod sweeper;

pub(crate) use self::sweeper::run;
pub use self::{
    policy::RetentionPolicy,
    sweeper::{Pass, sweep},
};
