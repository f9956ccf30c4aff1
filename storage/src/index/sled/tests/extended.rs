//! What an extension of a run costs: the same, however many assets the run has.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_any_size_is_extended_by_the_same_few_rows() {
    let mut written = Vec::new();
    for assets in [10, 10_000] {
        let folder = TempDir::new().expect("a folder");
        // Nothing is brought into the tree but by this test.
        let options = SledOptions { journal_bytes: 1 << 40, ..SledOptions::default() };
        let index = Arc::new(SledIndex::open(folder.path(), options).expect("the folder is free"));
        contract::a_run_of(index.clone(), assets).await;
        let before = index.core.base.begin_checkpoint().len();
        assert!(before > assets, "else this test counts nothing: {before}");

        contract::that_run_is_extended(index.clone()).await;

        let rows: Vec<_> = index.core.base.begin_checkpoint().keys().map(|key| key[0]).collect();
        written.push(rows);
    }
    assert!((1..10).contains(&written[0].len()), "{written:?}");
    assert_eq!(written[0], written[1], "in each space as many");
}
