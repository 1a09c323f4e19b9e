//! `examples/host` as a process of its own, over real sockets, on both databases.

mod hostile;
mod keys;
mod life;
mod processes;
mod receiver;
mod seams;
mod serve;
