//! Index against store, beside a service that goes on.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use mediakeep::retention::verify::{self, Depth};

use crate::harness::Host;
use crate::harness::bytes::noise;

/// How often the two are compared.
const LOOKS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_and_goes_while_index_and_store_are_compared_is_no_loss() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    join_all((0..60).map(|seed| owner.upload_loose(noise(2_000, seed)))).await;
    let going = AtomicBool::new(true);

    let sending = join_all((1..5).map(async |sender| {
        let mut sent = 0;
        while going.load(Ordering::Relaxed) {
            let asset = owner.upload_loose(noise(2_000, sender * 1_000_000 + sent)).await;
            assert_eq!(owner.delete(&format!("/v1/assets/{}", asset.id)).await.status(), 204);
            sent += 1;
        }
        sent
    }));
    let comparing = async {
        let mut found = Vec::new();
        for look in 0..LOOKS {
            let depth = if look % 2 == 0 { Depth::Sizes } else { Depth::Digests };
            found.push(verify::verify(host.app(), depth).await);
        }
        going.store(false, Ordering::Relaxed);
        found
    };
    let (sent, found) = tokio::join!(sending, comparing);

    assert!(sent.iter().all(|sent| *sent > 1), "{sent:?}: too few to tell anything");
    for findings in found {
        let findings = findings.expect("a comparison");
        assert!(findings.is_clean(), "{findings:?}");
    }
    let quiet = host.verify().await;
    assert!(quiet.is_clean() && quiet.pending.is_empty(), "{quiet:?}");
}
