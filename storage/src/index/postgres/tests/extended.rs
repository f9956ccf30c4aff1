//! What an extension of a run costs: the same, however many assets the run has.

use sqlx::AssertSqlSafe;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_any_size_is_extended_by_the_same_few_rows() {
    let mut written = Vec::new();
    for assets in [10, 1_000] {
        let database = testing::database().await;
        let index = Arc::new(open(database.url()).await);
        let mut connection = PgConnection::connect(database.url()).await.expect("the database answers");
        contract::a_run_of(index.clone(), assets).await;
        let (before,): (i64,) = sqlx::query_as("SELECT pg_current_xact_id()::text::bigint")
            .fetch_one(&mut connection)
            .await
            .expect("a number");

        contract::that_run_is_extended(index.clone()).await;

        written.push(since(&mut connection, before).await);
        assert_eq!(since(&mut connection, 0).await[0], ("mk_assets".to_owned(), i64::try_from(assets).expect("few")));
        connection.close().await.expect("a goodbye");
        index.close().await;
    }
    let rows: i64 = written[0].iter().map(|(_, rows)| rows).sum();
    assert!((1..10).contains(&rows), "{written:?}");
    assert_eq!(written[0], written[1]);
}

/// How many rows of each table were written by a later transaction than that one.
async fn since(connection: &mut PgConnection, transaction: i64) -> Vec<(String, i64)> {
    let tables = "SELECT table_name::text FROM information_schema.tables WHERE table_name LIKE 'mk\\_%' ORDER BY 1";
    let tables: Vec<(String,)> = sqlx::query_as(tables).fetch_all(&mut *connection).await.expect("our tables");
    let mut written = Vec::new();
    for (table,) in tables {
        let count = format!("SELECT count(*) FROM {table} WHERE xmin::text::bigint > {transaction}");
        let (rows,): (i64,) = sqlx::query_as(AssertSqlSafe(count)).fetch_one(&mut *connection).await.expect("a count");
        if rows > 0 {
            written.push((table, rows));
        }
    }
    written
}
