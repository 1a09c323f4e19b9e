//! Effects whose SQL commits together with their outcome, counted in the table that they write to.
#![forbid(unsafe_code)]

#[path = "transactional/books.rs"]
mod books;
#[path = "transactional/child.rs"]
mod child;
#[path = "transactional/commits.rs"]
mod commits;
#[path = "transactional/killed.rs"]
mod killed;
#[path = "transactional/lost.rs"]
mod lost;
#[path = "transactional/pooled.rs"]
mod pooled;
#[path = "transactional/refused.rs"]
mod refused;
#[path = "transactional/rolls_back.rs"]
mod rolls_back;
#[path = "transactional/start.rs"]
mod start;
#[path = "transactional/taken_over.rs"]
mod taken_over;

/// Makes a test of an `async fn(Books)` on each database that takes an effect's own SQL.
macro_rules! on_each_database {
    ($($rule:ident),+ $(,)?) => {
        $(mod $rule {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$rule(crate::books::Books::sqlite().await).await;
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(books) = crate::books::Books::postgres(module_path!(), false).await {
                    super::$rule(books).await;
                }
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn pooled() {
                if let Some(books) = crate::books::Books::postgres(module_path!(), true).await {
                    super::$rule(books).await;
                }
            }
        })+
    };
}
pub(crate) use on_each_database;
