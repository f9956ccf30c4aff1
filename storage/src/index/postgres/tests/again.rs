//! Transitions that meet each other: one of them is refused, and done again.

use super::*;
use crate::index::{Amended, Amendment};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transition_that_meets_anothers_change_is_done_again_and_counted() {
    let database = testing::database().await;
    let url = database.url();
    let index = Arc::new(open(url).await);
    let [one, _] = contract::two_assets_of_equal_bytes(index.clone()).await;
    let before = index.retries();
    let mut other = PgConnection::connect(url).await.expect("the database answers");
    other.execute("BEGIN; UPDATE mk_assets SET tenant = tenant").await.expect("every asset is changed");

    let amending = tokio::spawn({
        let index = index.clone();
        let change = Amendment { alt: Some(Some("words".into())), ..Amendment::default() };
        async move { index.amend(&tenant(), one, change, event(1)).await }
    });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let mut looker = PgConnection::connect(url).await.expect("the database answers");
    while sqlx::query_as::<_, (i64,)>(waits).fetch_one(&mut looker).await.expect("a count").0 == 0 {
        assert!(!amending.is_finished(), "it waits for the other");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(index.retries(), before);
    other.execute("COMMIT").await.expect("the change is there");

    let amended = amending.await.expect("a call returns").expect("an answer");
    assert!(matches!(amended, Amended::Changed(_)), "{amended:?}");
    assert!(index.retries() > before);
    for connection in [other, looker] {
        connection.close().await.expect("a goodbye");
    }
    index.close().await;
}
