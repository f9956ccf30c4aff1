//! Bytes in a bucket of Google's protocol: of the tests' own server, since no registry has one of theirs.

use mediakeep_storage::testing::Buckets;

use super::keeps_and_gives_up;
use crate::harness::process::Place;
use crate::harness::store::Store;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_google_bucket_keeps_what_was_acknowledged_and_gives_up_what_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("media")).expect("a bucket");
    let server = Buckets::serve_google(folder.path());
    let place = Place::at(Store::of_environment("gs://media/of/ours"));
    keeps_and_gives_up(&place, |mut command| {
        command.envs(server.google_environment());
        command
    })
    .await;
}
