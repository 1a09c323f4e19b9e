//! What the tests share: where the servers are, and how a test says that it was left out.
