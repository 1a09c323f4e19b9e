//! Run ids on a URL's path: whatever comes is a run id that is spelled back, or refused.
#![no_main]

use effectual::witness::{run_id_from_path, run_id_to_path};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|path: &str| {
    let Ok(run) = run_id_from_path(path) else { return };
    let segment = run_id_to_path(&run);
    assert!(segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-~".contains(&byte)));
    assert_eq!(run_id_from_path(&segment).as_ref(), Ok(&run));
    assert_eq!(run_id_from_path(&segment.replace("~2F", "/")).as_ref(), Ok(&run));
    assert_eq!(run_id_from_path(&segment.replace("~2F", "%2F")).as_ref(), Ok(&run));
});
