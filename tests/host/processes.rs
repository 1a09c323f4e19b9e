//! Two processes of the host on one database, and one of them killed in the midst.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use effectual_tests::{
    wait::{for_value, until},
    wire::Request,
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    keys::{at_once, one_run_among, records_in, runs_in},
    serve::{ACME, Host, Place, key, noop, run_of},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_at_once_at_two_processes_are_one_run() {
    let Some(place) = Place::postgres("host: two processes on PostgreSQL").await else { return };
    let hosts = [Arc::new(Host::start(&place).await), Arc::new(Host::start(&place).await)];
    for round in 1..=5 {
        let key = key();
        let run = one_run_among(&at_once(&hosts, &key, &noop()).await);
        for host in &hosts {
            assert_eq!(run_of(&host.create(&key, &noop()).await), run, "either process gives the one answer");
        }
        assert_eq!(runs_in(&place).await, round);
    }
}

/// The process that has the record dies before it has answered. The key is refused until the record's lease has ended, then
/// the other process runs the request: there is one run, and nobody was told of another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_leaves_its_key_to_the_other() {
    let Some(place) = Place::postgres("host: one of two processes killed").await else { return };
    let (dies, lives) = (Host::start(&place).await, Arc::new(Host::start(&place).await));
    let key = key();
    let hold = json!({ "key": key, "holdMs": 10_000 });
    let armed = dies.post("/conformance/seams/sample/test/idempotency/hold", hold).await;
    assert_eq!(armed.status, 201, "{armed:?}");
    let authority = dies.authority.clone();
    let request = Request::post("/runs", noop().to_string()).bearer(ACME).header("Idempotency-Key", &key);
    let held = tokio::spawn(async move { request.send(&authority).await });
    until("the request to be on record", Duration::from_secs(30), async || records_in(&place).await == 1)
        .await;
    // Held at the one process, it is in flight at the other.
    assert_eq!(lives.create(&key, &noop()).await.status, 409);
    dies.kill();
    assert!(held.await.expect("it ended").is_err(), "no answer came");
    assert_eq!(runs_in(&place).await, 0, "what was under way left no run");
    let answers = for_value(Duration::from_secs(90), async || {
        let answers = at_once(&[Arc::clone(&lives)], &key, &noop()).await;
        for refused in answers.iter().filter(|answer| answer.status != 201) {
            assert_eq!((refused.status, &refused.json()["error"]), (409, &json!("idempotency_in_flight")));
        }
        answers.iter().any(|answer| answer.status == 201).then_some(answers)
    });
    let run = one_run_among(&answers.await.expect("the lease ends"));
    assert_eq!(runs_in(&place).await, 1);
    assert_eq!(run_of(&lives.create(&key, &noop()).await), run);
}

/// A process dies while creates under many keys are on their way; every key is sent again to the other: one run a key,
/// and whoever was answered before keeps the run that was named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_among_many_creates_makes_no_second_run() {
    let Some(place) = Place::postgres("host: a kill among many creates").await else { return };
    let (dies, lives) = (Host::start(&place).await, Host::start(&place).await);
    let keys: Vec<_> = (0..200).map(|_| key()).collect();
    let mut sending = JoinSet::new();
    let told = Arc::new(AtomicUsize::new(0));
    for key in keys.clone() {
        let (authority, told) = (dies.authority.clone(), Arc::clone(&told));
        sending.spawn(async move {
            let request =
                Request::post("/runs", noop().to_string()).bearer(ACME).header("Idempotency-Key", &key);
            let answer = request.send(&authority).await.ok().filter(|answer| answer.status == 201);
            told.fetch_add(usize::from(answer.is_some()), Ordering::SeqCst);
            answer.map(|answer| (key, run_of(&answer)))
        });
    }
    until("some to be answered", Duration::from_secs(30), async || told.load(Ordering::SeqCst) >= 10).await;
    dies.kill();
    let answered: Vec<_> = sending.join_all().await.into_iter().flatten().collect();
    println!("{} of {} were answered before the kill", answered.len(), keys.len());
    assert!((10..keys.len()).contains(&answered.len()), "some were answered and some were not");
    for key in &keys {
        let answer = for_value(Duration::from_secs(90), async || {
            let answer = lives.create(key, &noop()).await;
            (answer.status == 201).then_some(answer)
        });
        let run = run_of(&answer.await.expect("the lease ends"));
        if let Some((_, named)) = answered.iter().find(|(answered, _)| answered == key) {
            assert_eq!(&run, named, "the run that the caller was told of");
        }
    }
    let stored = usize::try_from(runs_in(&place).await).expect("a count");
    assert_eq!(stored, keys.len(), "one run a key");
}

/// A process dies while its effect is under way. The next start executes the run again, under the same key: the receiver
/// sees the effect's key and no other.
async fn a_killed_process_resumes_its_runs(place: Place) {
    let host = Host::start(&place).await;
    // Nobody answers: the host dies while its request is under way.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", silent.local_addr().expect("an address"));
    let authority = host.authority.clone();
    let body = json!({ "mode": "duplicate-delivery", "effectUrl": url });
    let request = Request::post("/host/durability/kill", body.to_string()).bearer(ACME);
    let delivering = tokio::spawn(async move { request.send(&authority).await });
    let (mut stream, _) = silent.accept().await.expect("the effect's request");
    let first = read_key(&mut stream).await;
    host.kill();
    assert!(delivering.await.expect("it ended").is_err());
    drop(stream);

    let host = Host::start(&place).await;
    // Taken up again by the host itself, once the claim of the process that died has ended.
    let again = tokio::time::timeout(Duration::from_secs(120), silent.accept()).await;
    let (mut stream, _) = again.expect("the run is executed again").expect("a connection");
    let second = read_key(&mut stream).await;
    assert_eq!(first, second, "under the same key");
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .await
        .expect("answered");
    drop(host);
}

/// The idempotency key of the request on this connection.
async fn read_key(stream: &mut TcpStream) -> String {
    let mut request = vec![0; 4096];
    let read = stream.read(&mut request).await.expect("the request");
    let head = String::from_utf8_lossy(&request[..read]).to_lowercase();
    let key = head.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).expect("a key");
    key.to_owned()
}

crate::on_each_database!(a_killed_process_resumes_its_runs);
