//! Run ids on the path: three spellings, and what is none.

use effectual::RunId;
use effectual::witness::{RunPathError, run_id_from_path, run_id_to_path};

use crate::serve::Served;

/// Run ids with every character that may be in one, from a seed.
struct Ids(u64);

impl Ids {
    fn next_number(&mut self, below: usize) -> usize {
        // xorshift: reproducible, and good enough to walk over characters.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).expect("small")
    }

    fn token(&mut self, least: usize) -> String {
        const ALL: &[u8] = b"ABCXYZabcxyz019._~-";
        let length = least + self.next_number(129 - least);
        (0..length).map(|_| char::from(ALL[self.next_number(ALL.len())])).collect()
    }

    fn run(&mut self) -> RunId {
        let anonymous = if self.next_number(3) == 0 { "anon:" } else { "" };
        let text = format!("{anonymous}{}/{}", self.token(1), self.token(16));
        RunId::parse(text).expect("a valid run id")
    }

    /// The spelling with some of its bytes percent-encoded.
    fn percent(&mut self, path: &str) -> String {
        path.bytes()
            .map(|byte| match self.next_number(4) {
                0 => format!("%{byte:02X}"),
                1 => format!("%{byte:02x}"),
                _ => char::from(byte).to_string(),
            })
            .collect()
    }
}

#[test]
fn every_spelling_of_every_run_id_is_read_back() {
    for seed in 1..=64 {
        let mut ids = Ids(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
        for _ in 0..200 {
            let run = ids.run();
            let segment = run_id_to_path(&run);
            assert!(segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-~".contains(&byte)));
            let slash = segment.replace("~2F", "/");
            for spelled in [segment.clone(), slash.clone(), slash.replace('/', "%2f"), ids.percent(&segment)]
            {
                assert_eq!(run_id_from_path(&spelled).as_ref(), Ok(&run), "seed {seed}: {spelled}");
            }
        }
    }
}

/// Whatever bytes come, the answer is a run id that is spelled back, or one of two refusals.
#[test]
fn any_text_is_a_run_id_or_refused() {
    const PIECES: [&str; 16] = [
        "acme",
        "/",
        "~",
        "%",
        "2F",
        "~2F",
        "%2F",
        "~7E",
        "%7E",
        "0123456789abcdef",
        "é",
        "\0",
        " ",
        ":",
        "..",
        "%00",
    ];
    for seed in 1..=64 {
        let mut ids = Ids(u64::wrapping_mul(seed, 0x2545_f491_4f6c_dd1d));
        for _ in 0..500 {
            let pieces = ids.next_number(9);
            let text: String = (0..pieces).map(|_| PIECES[ids.next_number(PIECES.len())]).collect();
            match run_id_from_path(&text) {
                Ok(run) => assert_eq!(run_id_from_path(&run_id_to_path(&run)), Ok(run), "{text:?}"),
                Err(RunPathError::Escape | RunPathError::Id(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[tokio::test]
async fn three_spellings_lead_to_one_run() {
    let served = Served::start(effectual_tests::ledgers::memory().ledger.clone()).await;
    let run = RunId::parse("acme/~0123456789abcdef.Z").expect("a valid run id");
    served.know(&run);
    for spelled in [
        "acme~2F~7E0123456789abcdef.Z",
        "acme%2F~7E0123456789abcdef.Z",
        "acme/~7E0123456789abcdef.Z",
        "acme%2f%7E7E0123456789abcdef%2EZ",
    ] {
        let answer = served.get(&format!("/runs/{spelled}/effects")).await;
        assert_eq!((answer.status, &answer.json()["runId"]), (200, &run.as_str().into()), "{spelled}");
    }
}

#[tokio::test]
async fn hostile_paths_are_refused_in_the_shape_of_errors() {
    let served = Served::start(effectual_tests::ledgers::memory().ledger.clone()).await;
    let long = format!("acme/{}", "a".repeat(129));
    for spelled in [
        "acme~2",
        "acme~",
        "acme~zz0123456789abcdef",
        "acme%zz0123456789abcdef",
        "acme%2",
        "acme%2F0123456789abcdef~",
        "acme~2F0123456789abcdef%00",
        "acme~2F0123456789abcdef~00",
        "acme~2F0123456789abcdef%C3%28",
        "acme%252F0123456789abcdef",
        "acme~2F..~2F0123456789abcdef",
        "acme~2Fshort",
        "%20/0123456789abcdef",
        long.as_str(),
    ] {
        let answer = served.get(&format!("/runs/{spelled}/effects")).await;
        assert_eq!((answer.status, &answer.json()["error"]), (400, &"validation_error".into()), "{spelled}");
    }
    let run = served.run();
    for query in ["limit=0", "limit=1001", "limit=x", "after=1", "limit=1&limit=1", "after=%00"] {
        let answer = served.get(&format!("/runs/{run}/effects?{query}")).await;
        assert_eq!((answer.status, &answer.json()["error"]), (400, &"validation_error".into()), "{query}");
    }
}
