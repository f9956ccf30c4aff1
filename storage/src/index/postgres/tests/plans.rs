//! No statement reads all of a table that grows.

use sqlx::AssertSqlSafe;

use super::super::sql;
use super::*;

/// What fills each table with 100,000 rows or so: one tenant's assets, each referenced by one of 1,000 runs, all looked at some day.
const FILL: &str = "
    INSERT INTO mk_assets SELECT 'acme', decode(lpad(to_hex(n), 32, '0'), 'hex'), 'live', 'text', 'text/plain', n,
        decode(md5(n::text), 'hex'), n, decode(md5(n::text), 'hex'), n % 100 / 99, '\\x01' FROM generate_series(1, 100000) n;
    INSERT INTO mk_runs SELECT 'acme', 'run-' || n, n % 2 = 0, n, false, NULL, n, NULL, n % 100 / 99, '\\x01'
        FROM generate_series(1, 100000) n;
    INSERT INTO mk_holds SELECT tenant, 0, asset, 'audit', '\\x01' FROM mk_assets;
    INSERT INTO mk_same SELECT tenant, decode(md5(bytes::text), 'hex'), asset FROM mk_assets;
    INSERT INTO mk_refs SELECT 'acme', 'run-' || (n % 1000 + 1), decode(lpad(to_hex(n), 32, '0'), 'hex'), 0
        FROM generate_series(1, 100000) n;
    INSERT INTO mk_artifacts SELECT tenant, run, encode(asset, 'hex'), '\\x01' FROM mk_refs;
    INSERT INTO mk_artifact_assets SELECT tenant, asset, run, encode(asset, 'hex') FROM mk_refs;
    INSERT INTO mk_looks SELECT n, n % 2, 'tenant-' || n % 1000, decode(lpad(to_hex(n), 32, '0'), 'hex') FROM generate_series(1, 100000) n;
    INSERT INTO mk_blobs SELECT 'acme', decode(md5(n::text), 'hex'), 1, NULL, 1, n, decode(md5(n::text), 'hex'), NULL
        FROM generate_series(1, 100000) n;
    INSERT INTO mk_digests SELECT tenant, sha256, blob FROM mk_blobs;
    INSERT INTO mk_uploads SELECT bytes, tenant, blob FROM mk_blobs;
    INSERT INTO mk_condemned SELECT bytes, tenant, blob FROM mk_blobs;
    INSERT INTO mk_doomed SELECT tenant, blob FROM mk_blobs;
    INSERT INTO mk_claims SELECT tenant, blob, blob, bytes, NULL, NULL FROM mk_blobs;
    INSERT INTO mk_revoked SELECT tenant, blob, bytes FROM mk_blobs;
    INSERT INTO mk_urls SELECT tenant, blob, blob, bytes, 1, '\\x01' FROM mk_blobs;
    INSERT INTO mk_epochs SELECT 'tenant-' || n, n FROM generate_series(1, 100000) n;
    INSERT INTO mk_usage SELECT 'tenant-' || n, n, 1 FROM generate_series(1, 100000) n;
    INSERT INTO mk_used (tenant, bytes, assets) SELECT 'tenant-' || n, n, 1 FROM generate_series(1, 100000) n;
    INSERT INTO mk_reserved SELECT 'tenant-' || n, decode(md5(n::text), 'hex'), n FROM generate_series(1, 100000) n;
    INSERT INTO mk_owed SELECT tenant, blob, '\\x01' FROM mk_blobs;
    INSERT INTO mk_resumable SELECT tenant, blob, '\\x01' FROM mk_blobs;
    INSERT INTO mk_resumable_parts SELECT tenant, blob, 0, 1, blob FROM mk_blobs;
    INSERT INTO mk_resumable_looks SELECT bytes, tenant, blob FROM mk_blobs;
    INSERT INTO mk_turns SELECT 'turn-' || n FROM generate_series(1, 100000) n;
    INSERT INTO mk_hold_numbers SELECT 'tenant-' || n, n FROM generate_series(1, 100000) n;
    INSERT INTO mk_tidy SELECT bytes, 0, tenant, blob FROM mk_blobs;
    INSERT INTO mk_audit_waiting (tenant, event) SELECT 'acme', '\\x01' FROM generate_series(1, 100000) n;
    INSERT INTO mk_audit_rows SELECT 'acme', n, '\\x01' FROM generate_series(1, 100000) n;
    INSERT INTO mk_audit_heads SELECT 'tenant-' || n, n, '\\x01' FROM generate_series(1, 100000) n;
    ANALYZE;";

/// Statements that have no plan, or read tables of the system's own.
const WITHOUT_PLAN: [&str; 6] =
    ["BEGIN", "BEGIN_BY_LOCK", "BEGIN_SNAPSHOT", "SCHEMA_TABLE", "SCHEMA_THERE", "DURABILITY"];

/// These have one row each, or a few.
const SMALL: [&str; 2] = ["mk_schema", "mk_turns"];

#[tokio::test]
async fn every_statement_finds_its_rows_by_an_index() {
    let test = testing::database().await;
    let url = test.url();
    open(url).await.close().await;
    let mut database = PgConnection::connect(url).await.expect("the database answers");
    database.execute(FILL).await.expect("rows");
    // As the planner itself would choose, and for whatever the parameters turn out to be.
    database.execute("SET enable_seqscan = on; SET plan_cache_mode = force_generic_plan").await.expect("settings");

    let mut found = Vec::new();
    for (name, statement) in sql::ALL.iter().filter(|(name, _)| !WITHOUT_PLAN.contains(name)) {
        found
            .extend(read_as_a_whole(&plan(&mut database, name, statement).await).map(|line| format!("{name}: {line}")));
    }
    let (_, looks) = sql::ALL.iter().find(|(name, _)| *name == "LOOKS_OF").expect("it is in the list");
    let looks = plan(&mut database, "looks", looks).await;
    assert!(
        looks.iter().any(|line| line.contains("mk_looks_of_tenant")),
        "a preview costs what its tenant has: {looks:?}"
    );
    let bad = plan(&mut database, "bad", "SELECT record FROM mk_assets WHERE kind = $1").await;
    assert_eq!(read_as_a_whole(&bad).count(), 1, "else this test finds nothing: {bad:?}");

    database.close().await.expect("a goodbye");
    assert_eq!(found, Vec::<String>::new());
}

/// The steps of a plan that read all of a table which grows.
fn read_as_a_whole(plan: &[String]) -> impl Iterator<Item = &str> {
    let whole = plan.iter().map(|line| line.trim()).filter(|line| line.contains("Seq Scan on "));
    whole.filter(|line| !SMALL.iter().any(|small| line.contains(small)))
}

async fn plan(database: &mut PgConnection, name: &str, statement: &str) -> Vec<String> {
    let prepare = format!("PREPARE {name} AS {statement}");
    database.execute(AssertSqlSafe(prepare)).await.unwrap_or_else(|error| unreachable!("{name}: {error}"));
    let parameters = (1..).take_while(|n| statement.contains(&format!("${n}"))).count();
    let nothing = vec!["NULL"; parameters].join(", ");
    let explain = match parameters {
        0 => format!("EXPLAIN EXECUTE {name}"),
        _ => format!("EXPLAIN EXECUTE {name}({nothing})"),
    };
    let lines = sqlx::query_as::<_, (String,)>(AssertSqlSafe(explain)).fetch_all(database).await;
    lines.expect("a plan").into_iter().map(|(line,)| line).collect()
}

#[test]
fn every_statement_is_in_the_list() {
    let sources = [
        include_str!("../../postgres.rs"),
        include_str!("../artifacts.rs"),
        include_str!("../assets.rs"),
        include_str!("../blobs.rs"),
        include_str!("../blobs/ends.rs"),
        include_str!("../connect.rs"),
        include_str!("../due.rs"),
        include_str!("../ending.rs"),
        include_str!("../erasing.rs"),
        include_str!("../holds.rs"),
        include_str!("../ingest.rs"),
        include_str!("../looks.rs"),
        include_str!("../owed.rs"),
        include_str!("../restore.rs"),
        include_str!("../resumable.rs"),
        include_str!("../runs.rs"),
        include_str!("../turns.rs"),
        include_str!("../tx.rs"),
        include_str!("../upkeep.rs"),
        include_str!("../urls.rs"),
        include_str!("../usage.rs"),
    ];
    for source in sources {
        for way in ["sqlx::query", "use sqlx::query", "QueryBuilder", "Executor"] {
            assert!(!source.contains(way), "a statement that `sql` does not know of: {way}");
        }
        let raw = source.matches("raw_sql").count();
        assert!(raw == 0 || source.contains("raw_sql(*migration)") && raw == 1, "only migrations come from files");
    }
}
