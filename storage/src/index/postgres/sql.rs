//! Every statement that the index sends, so that a test can ask the planner about each of them.
//!
//! A [`Sql`] is made here alone, and nothing else of the module names sqlx's `query`: a statement that is not in the list cannot be
//! sent. What they have in common:
//!
//! - A row that is to be made is inserted first, with `ON CONFLICT DO NOTHING`, and looked for only if that made nothing: looking
//!   where nothing is locks a page of the key's index against all inserts of others.
//! - What comes in numbers comes in arrays, so a transition takes as many statements for a thousand assets as for one.
//! - Lists go on from behind a key, and never skip rows by their number.

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::{Query, QueryAs};
use sqlx::{FromRow, Postgres};

/// A statement of this list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sql(&'static str);

impl Sql {
    /// The statement, for its effect.
    pub(super) fn run<'q>(self) -> Query<'q, Postgres, PgArguments> {
        sqlx::query(self.0)
    }

    /// The statement, for its rows.
    pub(super) fn rows<'q, O: for<'r> FromRow<'r, PgRow>>(self) -> QueryAs<'q, Postgres, O, PgArguments> {
        sqlx::query_as(self.0)
    }

    /// A statement that begins a transaction.
    pub(super) fn begins(self) -> &'static str {
        self.0
    }
}

macro_rules! statements {
    ($($name:ident = $sql:expr;)+) => {
        $(pub(super) const $name: Sql = Sql($sql);)+

        /// All of them, each with its name.
        #[cfg(test)]
        pub(super) const ALL: &[(&str, &str)] = &[$((stringify!($name), $sql)),+];
    };
}

/// The asset `a` and what keeps it: its runs as lists in the order of its references, newest first; then the names of its own holds,
/// and of those of its runs, each once where it comes first; last the tenant's epoch. Where nothing is held, nothing is asked of the table of holds.
macro_rules! with_kept {
    ($from:literal, $tail:literal) => {
        concat!(
            "SELECT a.record, a.holds, k.runs, k.ends, k.defaults, k.erased, k.held, \
             CASE WHEN a.holds > 0 THEN ARRAY(SELECT h.name FROM mk_holds h \
             WHERE h.tenant = a.tenant AND h.kind = 0 AND h.thing = a.asset ORDER BY h.name LIMIT 100) END, \
             CASE WHEN true = ANY(k.held) THEN ARRAY(SELECT h.name FROM mk_refs r \
             JOIN mk_runs n ON n.tenant = r.tenant AND n.run = r.run AND n.holds > 0 \
             JOIN mk_holds h ON h.tenant = n.tenant AND h.kind = 1 AND h.thing = convert_to(n.run, 'UTF8') \
             WHERE r.tenant = a.tenant AND r.asset = a.asset \
             GROUP BY h.name ORDER BY max(r.place) DESC, h.name LIMIT 200) END, \
             COALESCE((SELECT e.epoch FROM mk_epochs e WHERE e.tenant = a.tenant), 0) ",
            $from,
            " LEFT JOIN LATERAL (SELECT array_agg(r.run ORDER BY r.place DESC) AS runs, \
             array_agg(n.end_at ORDER BY r.place DESC) AS ends, array_agg(n.end_default ORDER BY r.place DESC) AS defaults, \
             array_agg(n.erased_at ORDER BY r.place DESC) AS erased, array_agg(n.holds > 0 ORDER BY r.place DESC) AS held \
             FROM mk_refs r JOIN mk_runs n ON n.tenant = r.tenant AND n.run = r.run \
             WHERE r.tenant = a.tenant AND r.asset = a.asset) k ON true ",
            $tail
        )
    };
}

/// What the run `n` references, counted now.
macro_rules! with_count {
    ($head:literal, $tail:literal) => {
        concat!(
            $head,
            " CROSS JOIN LATERAL (SELECT count(*) AS assets, \
             COALESCE(sum(a.bytes) FILTER (WHERE a.state = 'live'), 0)::bigint AS bytes \
             FROM mk_refs r JOIN mk_assets a ON a.tenant = r.tenant AND a.asset = r.asset \
             WHERE r.tenant = n.tenant AND r.run = n.run) c ",
            $tail
        )
    };
}

/// Takes entries out of a table of blobs by time.
macro_rules! blobs_out {
    ($table:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " q USING UNNEST($1::bigint[], $2::text[], $3::bytea[]) AS u(at, tenant, blob) \
             WHERE q.at = u.at AND q.tenant = u.tenant AND q.blob = u.blob"
        )
    };
}

/// Puts entries into a table of blobs by time.
macro_rules! blobs_in {
    ($table:literal) => {
        concat!(
            "INSERT INTO ",
            $table,
            " (at, tenant, blob) SELECT at, tenant, blob \
             FROM UNNEST($1::bigint[], $2::text[], $3::bytea[]) AS u(at, tenant, blob) ON CONFLICT DO NOTHING"
        )
    };
}

/// Blobs whose entry in a table by time is before a time, and whose row nobody else is busy with.
macro_rules! blobs_due {
    ($table:literal, $before:literal) => {
        concat!(
            "SELECT b.tenant, b.blob, b.state, b.since, b.holders, b.bytes, b.sha256, b.asset FROM ",
            $table,
            " q JOIN mk_blobs b ON b.tenant = q.tenant AND b.blob = q.blob WHERE q.at ",
            $before,
            " $1 ORDER BY q.at, q.tenant, q.blob LIMIT $2 FOR UPDATE OF b SKIP LOCKED"
        )
    };
}

/// Drops rows past their time, of those whose entries have come.
macro_rules! names_drop {
    ($table:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " c USING UNNEST($1::text[], $2::bytea[]) AS u(tenant, name) \
             WHERE c.tenant = u.tenant AND c.name = u.name AND c.until <= $3"
        )
    };
}

/// Gives rows whose entries came too soon another entry.
macro_rules! names_later {
    ($table:literal, $kind:literal) => {
        concat!(
            "INSERT INTO mk_tidy (at, kind, tenant, name) SELECT c.until, ",
            $kind,
            ", c.tenant, c.name FROM UNNEST($1::text[], $2::bytea[]) AS u(tenant, name) JOIN ",
            $table,
            " c ON c.tenant = u.tenant AND c.name = u.name ON CONFLICT DO NOTHING"
        )
    };
}

statements! {
    BEGIN = "BEGIN ISOLATION LEVEL SERIALIZABLE";
    BEGIN_BY_LOCK = "BEGIN ISOLATION LEVEL READ COMMITTED";
    BEGIN_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    SESSION = "SELECT set_config('synchronous_commit', 'on', false), set_config('enable_seqscan', 'off', false), \
        set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false), \
        set_config('idle_in_transaction_session_timeout', $3, false)";
    MIGRATION_SESSION = "SELECT set_config('statement_timeout', '0', false), set_config('lock_timeout', $1, false), \
        set_config('client_min_messages', 'warning', false)";
    DURABILITY = "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes')";
    READY = "SELECT version FROM mk_schema WHERE one FOR SHARE";

    SCHEMA_THERE = "SELECT count(*) FROM information_schema.tables \
        WHERE table_schema = current_schema() AND table_name = 'mk_schema'";
    SCHEMA_TABLE = "CREATE TABLE IF NOT EXISTS mk_schema (one BOOLEAN PRIMARY KEY, version INT NOT NULL)";
    SCHEMA_ROW = "INSERT INTO mk_schema (one, version) VALUES (true, 0) ON CONFLICT DO NOTHING";
    SCHEMA_LOCK = "SELECT version FROM mk_schema WHERE one FOR UPDATE";
    SCHEMA_VERSION = "UPDATE mk_schema SET version = $1 WHERE one";

    CLAIM_NEW = "WITH new AS (INSERT INTO mk_claims (tenant, name, holder, until) VALUES ($1, $2, $3, $4) \
        ON CONFLICT DO NOTHING RETURNING until), \
        entry AS (INSERT INTO mk_tidy (at, kind, tenant, name) SELECT until, 0, $1, $2 FROM new ON CONFLICT DO NOTHING) \
        SELECT count(*) FROM new";
    CLAIM_LOCK = "SELECT holder, until, asset, fingerprint FROM mk_claims WHERE tenant = $1 AND name = $2 FOR UPDATE";
    CLAIM_PUT = "UPDATE mk_claims SET holder = $3, until = $4, asset = $5, fingerprint = $6 \
        WHERE tenant = $1 AND name = $2";
    CLAIMS_ANSWERS = "SELECT c.name FROM UNNEST($2::bytea[], $3::bytea[]) AS u(name, asset) \
        JOIN mk_claims c ON c.tenant = $1 AND c.name = u.name AND c.asset = u.asset FOR UPDATE OF c NOWAIT";
    CLAIMS_FORGET = "DELETE FROM mk_claims WHERE tenant = $1 AND name = ANY($2::bytea[])";
    CLAIM_RELEASE = "DELETE FROM mk_claims WHERE tenant = $1 AND name = $2 AND holder = $3 AND asset IS NULL";

    BLOB_NEW = "WITH new AS (INSERT INTO mk_blobs (tenant, blob, state, since, holders, asset) \
        VALUES ($1, $2, 0, $3, 0, $4) ON CONFLICT DO NOTHING RETURNING since) \
        INSERT INTO mk_uploads (at, tenant, blob) SELECT since, $1, $2 FROM new";
    BLOB_LOCK = "SELECT tenant, blob, state, since, holders, bytes, sha256, asset FROM mk_blobs \
        WHERE tenant = $1 AND blob = $2 FOR UPDATE";
    BLOBS_LOCK = "SELECT tenant, blob, state, since, holders, bytes, sha256, asset FROM mk_blobs \
        WHERE tenant = $1 AND blob = ANY($2::bytea[]) ORDER BY blob FOR UPDATE";
    BLOBS_PUT = "UPDATE mk_blobs b SET state = u.state, since = u.since, holders = u.holders, bytes = u.bytes, \
        sha256 = u.sha256, asset = u.asset FROM UNNEST($1::text[], $2::bytea[], $3::smallint[], $4::bigint[], \
        $5::bigint[], $6::bigint[], $7::bytea[], $8::bytea[]) \
        AS u(tenant, blob, state, since, holders, bytes, sha256, asset) WHERE b.tenant = u.tenant AND b.blob = u.blob";
    BLOB_HELD = "INSERT INTO mk_blobs (tenant, blob, state, holders) VALUES ($1, $2, 1, 0) ON CONFLICT DO NOTHING";
    BLOBS_TOUCH = "UPDATE mk_blobs b SET since = b.since FROM mk_assets a WHERE a.tenant = $1 \
        AND a.asset = ANY($2::bytea[]) AND a.state <> 'live' AND b.tenant = a.tenant AND b.blob = a.blob AND b.state = 2";
    BLOBS_HELD = "SELECT u.tenant, u.blob FROM UNNEST($1::text[], $2::bytea[], $3::bytea[]) AS u(tenant, sha256, blob) \
        JOIN mk_same s ON s.tenant = u.tenant AND s.sha256 = u.sha256 \
        JOIN mk_assets a ON a.tenant = s.tenant AND a.asset = s.asset WHERE a.blob = u.blob AND a.holds > 0";
    BLOBS_RUNS = "SELECT u.tenant, u.blob, n.holds FROM UNNEST($1::text[], $2::bytea[], $3::bytea[]) AS u(tenant, sha256, blob) \
        JOIN mk_same s ON s.tenant = u.tenant AND s.sha256 = u.sha256 \
        JOIN mk_assets a ON a.tenant = s.tenant AND a.asset = s.asset \
        JOIN mk_refs r ON r.tenant = s.tenant AND r.asset = s.asset \
        JOIN mk_runs n ON n.tenant = r.tenant AND n.run = r.run WHERE a.blob = u.blob FOR SHARE OF n NOWAIT";
    BLOB_DROP = "DELETE FROM mk_blobs WHERE tenant = $1 AND blob = $2";
    UPLOADS_IN = blobs_in!("mk_uploads");
    UPLOADS_OUT = blobs_out!("mk_uploads");
    UPLOADS_END = concat!("WITH freed AS (DELETE FROM mk_reserved r USING UNNEST($2::text[], $3::bytea[]) AS u(tenant, blob) \
        WHERE r.tenant = u.tenant AND r.blob = u.blob) ", blobs_out!("mk_uploads"));
    UPLOADS_SILENT = blobs_due!("mk_uploads", "<");
    CONDEMNED_IN = blobs_in!("mk_condemned");
    CONDEMNED_OUT = blobs_out!("mk_condemned");
    CONDEMNED_DUE = blobs_due!("mk_condemned", "<=");
    REMOVAL_TURN = "SELECT name FROM mk_turns WHERE name = 'removal' FOR UPDATE SKIP LOCKED";
    DOOMED_IN = "INSERT INTO mk_doomed (tenant, blob) SELECT tenant, blob \
        FROM UNNEST($1::bigint[], $2::text[], $3::bytea[]) AS u(at, tenant, blob) ON CONFLICT DO NOTHING";
    DOOMED_OUT = "DELETE FROM mk_doomed d USING UNNEST($1::bigint[], $2::text[], $3::bytea[]) AS u(at, tenant, blob) \
        WHERE d.tenant = u.tenant AND d.blob = u.blob";
    DOOMED_LIST = "SELECT b.tenant, b.blob, b.asset FROM mk_doomed d \
        JOIN mk_blobs b ON b.tenant = d.tenant AND b.blob = d.blob ORDER BY d.tenant, d.blob LIMIT $1";
    DIGEST_NEW = "INSERT INTO mk_digests (tenant, sha256, blob) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    DIGEST_PUT = "INSERT INTO mk_digests (tenant, sha256, blob) VALUES ($1, $2, $3) \
        ON CONFLICT (tenant, sha256) DO UPDATE SET blob = EXCLUDED.blob";
    DIGEST_BLOB = "SELECT blob FROM mk_digests WHERE tenant = $1 AND sha256 = $2";
    DIGESTS_DROP = "DELETE FROM mk_digests d USING UNNEST($1::text[], $2::bytea[], $3::bytea[]) \
        AS u(tenant, sha256, blob) WHERE d.tenant = u.tenant AND d.sha256 = u.sha256 AND d.blob = u.blob";
    BLOB_LIST = "SELECT tenant, blob, state, since, holders, bytes, sha256, asset FROM mk_blobs \
        WHERE (tenant, blob) > ($1, $2) ORDER BY tenant, blob LIMIT $3";

    ASSET_NEW = "WITH made AS (INSERT INTO mk_assets \
        (tenant, asset, state, kind, mime_type, bytes, look, record, blob, claim, holds) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $10, $12, 0)), \
        same AS (INSERT INTO mk_same (tenant, sha256, asset) SELECT $1, $11::bytea, $2 WHERE $11::bytea IS NOT NULL), \
        looks AS (INSERT INTO mk_looks (at, kind, tenant, name) SELECT $7::bigint, 0, $1, $2 WHERE $7::bigint IS NOT NULL), \
        used AS (INSERT INTO mk_used (tenant, bytes, assets) SELECT $1, $6, 1 WHERE $3 = 'live'), \
        refs AS (INSERT INTO mk_refs (tenant, run, asset, place) SELECT $1, $9::text, $2, 0 WHERE $9::text IS NOT NULL) \
        SELECT COALESCE((SELECT e.epoch FROM mk_epochs e WHERE e.tenant = $1), 0)";
    ASSET_READ = "SELECT record FROM mk_assets WHERE tenant = $1 AND asset = $2";
    ASSET_LOCK = "SELECT record, look, holds, claim FROM mk_assets WHERE tenant = $1 AND asset = $2 FOR UPDATE";
    ASSET_LOCK_FREE = "SELECT record, look, holds, claim FROM mk_assets WHERE tenant = $1 AND asset = $2 \
        FOR UPDATE SKIP LOCKED";
    ASSETS_THERE = "SELECT asset, state, look FROM mk_assets WHERE tenant = $1 AND asset = ANY($2::bytea[])";
    ASSETS_INHERITED = "SELECT a.asset, a.state, a.look FROM mk_refs r \
        JOIN mk_assets a ON a.tenant = r.tenant AND a.asset = r.asset \
        WHERE r.tenant = $1 AND r.run = $2 ORDER BY r.asset";
    ASSETS_OF_RUN = "SELECT a.record, a.look, a.holds, a.claim FROM mk_refs r \
        JOIN mk_assets a ON a.tenant = r.tenant AND a.asset = r.asset \
        WHERE r.tenant = $1 AND r.run = $2 AND r.asset > $3 ORDER BY r.asset LIMIT $4";
    ASSETS_PUT = "UPDATE mk_assets a SET state = u.state, look = u.look, record = u.record, claim = u.claim, \
        holds = u.holds FROM UNNEST($2::bytea[], $3::text[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bigint[]) \
        AS u(asset, state, look, record, claim, holds) WHERE a.tenant = $1 AND a.asset = u.asset";
    ASSETS_LOOK = "UPDATE mk_assets a SET look = u.look FROM UNNEST($2::bytea[], $3::bigint[]) AS u(asset, look) \
        WHERE a.tenant = $1 AND a.asset = u.asset";
    ASSET_DROP = "DELETE FROM mk_assets WHERE tenant = $1 AND asset = $2";
    ASSET_LIST = "SELECT record FROM mk_assets WHERE (tenant, asset) > ($1, $2) ORDER BY tenant, asset LIMIT $3";
    VIEWS = with_kept!("FROM mk_assets a",
        "WHERE a.tenant = $1 AND a.asset = ANY($2::bytea[]) ORDER BY a.asset");
    PAGE = with_kept!("FROM mk_assets a",
        "WHERE a.tenant = $1 AND a.asset > $2 AND ($3::bytea IS NULL OR a.kind = $3) \
        AND ($4::bytea IS NULL OR a.mime_type = $4) AND ($5::bytea IS NULL OR convert_to(a.state, 'UTF8') = $5) \
        ORDER BY a.asset LIMIT $6");
    PAGE_OF_RUN = with_kept!("FROM mk_refs q JOIN mk_assets a ON a.tenant = q.tenant AND a.asset = q.asset",
        "WHERE q.tenant = $1 AND q.run = $7 AND q.asset > $2 AND ($3::bytea IS NULL OR a.kind = $3) \
        AND ($4::bytea IS NULL OR a.mime_type = $4) AND ($5::bytea IS NULL OR convert_to(a.state, 'UTF8') = $5) \
        ORDER BY q.asset LIMIT $6");

    SAME_BYTES = "SELECT asset FROM mk_same WHERE tenant = $1 AND sha256 = $2 AND asset > $3 AND asset <> $4 \
        ORDER BY asset LIMIT $5";
    SAME_OF = "SELECT u.sha256, s.asset FROM UNNEST($2::bytea[]) AS u(sha256) CROSS JOIN LATERAL (SELECT asset FROM mk_same \
        WHERE tenant = $1 AND sha256 = u.sha256 ORDER BY asset LIMIT $3) s";
    SAME_DROP = "DELETE FROM mk_same s USING UNNEST($2::bytea[], $3::bytea[]) AS u(sha256, asset) \
        WHERE s.tenant = $1 AND s.sha256 = u.sha256 AND s.asset = u.asset";

    HOLD_NEW = "INSERT INTO mk_holds (tenant, kind, thing, name, record) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
    HOLD_READ = "SELECT record FROM mk_holds WHERE tenant = $1 AND kind = $2 AND thing = $3 AND name = $4";
    HOLD_PUT = "UPDATE mk_holds SET record = $5 WHERE tenant = $1 AND kind = $2 AND thing = $3 AND name = $4";
    HOLD_DROP = "DELETE FROM mk_holds WHERE tenant = $1 AND kind = $2 AND thing = $3 AND name = $4";
    HOLD_LIST = "SELECT record FROM mk_holds WHERE tenant = $1 AND kind = $2 AND thing = $3 AND name > $4 \
        ORDER BY name LIMIT $5";

    RUN_NEW = "WITH new AS (INSERT INTO mk_runs (tenant, run, open, end_at, end_default, look, record, erased_at, holds) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $9, 0) ON CONFLICT DO NOTHING RETURNING look), \
        looks AS (INSERT INTO mk_looks (at, kind, tenant, name) SELECT look, 1, $1, $8 FROM new WHERE look IS NOT NULL) \
        SELECT count(*) FROM new";
    RUN_READ = "SELECT record, look, walked, holds FROM mk_runs WHERE tenant = $1 AND run = $2";
    RUN_LOCK = "SELECT record, look, walked, holds FROM mk_runs WHERE tenant = $1 AND run = $2 FOR UPDATE";
    RUN_LOCK_FREE = "SELECT record, look, walked, holds FROM mk_runs WHERE tenant = $1 AND run = $2 FOR UPDATE SKIP LOCKED";
    RUN_SHARE = "SELECT record, look, walked, holds FROM mk_runs WHERE tenant = $1 AND run = $2 FOR SHARE";
    RUNS_SHARE = "SELECT run FROM mk_runs WHERE tenant = $1 AND run = ANY($2::text[]) ORDER BY run FOR SHARE NOWAIT";
    RUN_PUT = "UPDATE mk_runs SET open = $3, end_at = $4, end_default = $5, look = $6, walked = $7, record = $8, \
        erased_at = $9, holds = $10 \
        WHERE tenant = $1 AND run = $2";
    RUN_LOOK = "UPDATE mk_runs SET look = $3, walked = $4 WHERE tenant = $1 AND run = $2";
    RUN_COUNT = "SELECT count(*), COALESCE(sum(a.bytes) FILTER (WHERE a.state = 'live'), 0)::bigint \
        FROM mk_refs r JOIN mk_assets a ON a.tenant = r.tenant AND a.asset = r.asset WHERE r.tenant = $1 AND r.run = $2";
    RUN_VIEW = with_count!("SELECT n.record, c.assets, c.bytes FROM mk_runs n", "WHERE n.tenant = $1 AND n.run = $2");
    RUN_LIST = with_count!("SELECT n.record, c.assets, c.bytes FROM mk_runs n",
        "WHERE n.tenant = $1 AND n.run > $2 AND ($3::boolean IS NULL OR n.open = $3) ORDER BY n.run LIMIT $4");

    ARTIFACTS_COUNT = "UPDATE mk_runs SET artifacts = artifacts + $3 WHERE tenant = $1 AND run = $2 RETURNING artifacts";
    ARTIFACTS_COUNTED = "UPDATE mk_runs SET artifacts = GREATEST(artifacts, $3) WHERE tenant = $1 AND run = $2";
    ARTIFACT_ROW = "SELECT record FROM mk_artifacts WHERE tenant = $1 AND run = $2 AND artifact = $3";
    ARTIFACT_READ = "SELECT a.record FROM mk_artifacts a JOIN mk_runs n ON n.tenant = a.tenant AND n.run = a.run \
        WHERE a.tenant = $1 AND a.run = $2 AND a.artifact = $3 AND n.erased_at IS NULL";
    ARTIFACT_PUT = "INSERT INTO mk_artifacts (tenant, run, artifact, record) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (tenant, run, artifact) DO UPDATE SET record = EXCLUDED.record";
    ARTIFACT_NAMES = "INSERT INTO mk_artifact_assets (tenant, asset, run, artifact) SELECT $1, u.asset, $2, $3 \
        FROM UNNEST($4::bytea[]) AS u(asset) ON CONFLICT DO NOTHING";
    ARTIFACT_NAMES_DROP = "DELETE FROM mk_artifact_assets d USING UNNEST($2::bytea[], $3::text[], $4::text[]) \
        AS u(asset, run, artifact) \
        WHERE d.tenant = $1 AND d.asset = u.asset AND d.run = u.run AND d.artifact = u.artifact";
    ARTIFACT_NAMING = "SELECT d.run, d.artifact FROM mk_artifact_assets d \
        JOIN mk_runs n ON n.tenant = d.tenant AND n.run = d.run \
        WHERE d.tenant = $1 AND d.asset = $2 AND n.erased_at IS NULL ORDER BY d.run, d.artifact LIMIT 1";
    ARTIFACTS_OF_RUN = "SELECT record FROM mk_artifacts WHERE tenant = $1 AND run = $2 ORDER BY artifact LIMIT $3";
    ARTIFACTS_DROP = "DELETE FROM mk_artifacts WHERE tenant = $1 AND run = $2 AND artifact = ANY($3::text[])";

    REFS_NEW = "INSERT INTO mk_refs (tenant, run, asset, place) SELECT $1, $2, u.asset, \
        COALESCE((SELECT max(r.place) + 1 FROM mk_refs r WHERE r.tenant = $1 AND r.asset = u.asset), 0) \
        FROM UNNEST($3::bytea[]) AS u(asset) ON CONFLICT DO NOTHING RETURNING asset, place";
    REFS_INHERIT = "INSERT INTO mk_refs (tenant, run, asset, place) SELECT $1, $3, q.asset, \
        COALESCE((SELECT max(r.place) + 1 FROM mk_refs r WHERE r.tenant = $1 AND r.asset = q.asset), 0) \
        FROM mk_refs q WHERE q.tenant = $1 AND q.run = $2 ON CONFLICT DO NOTHING RETURNING asset, place";
    REFS_COUNT = "SELECT count(*) FROM mk_refs WHERE tenant = $1 AND run = $2";
    REFS_OF = "SELECT r.asset, r.run, n.end_at, n.end_default, n.erased_at, n.holds > 0 FROM mk_refs r \
        JOIN mk_runs n ON n.tenant = r.tenant AND n.run = r.run \
        WHERE r.tenant = $1 AND r.asset = ANY($2::bytea[]) ORDER BY r.asset, r.place DESC";
    REFS_KEEP = "SELECT u.asset FROM UNNEST($2::bytea[]) AS u(asset) CROSS JOIN LATERAL (SELECT 1 FROM mk_refs r \
        JOIN mk_runs n ON n.tenant = r.tenant AND n.run = r.run WHERE r.tenant = $1 AND r.asset = u.asset \
        AND (n.holds > 0 OR n.end_at IS NULL OR (n.look IS NOT NULL AND n.walked IS NULL \
        AND COALESCE(n.erased_at > $4, n.end_at > $3))) \
        ORDER BY r.place DESC LIMIT 1) k";
    REFS_DROP = "DELETE FROM mk_refs WHERE tenant = $1 AND asset = $2 RETURNING run";
    REFS_WALK = "SELECT asset FROM mk_refs WHERE tenant = $1 AND run = $2 AND asset > $3 ORDER BY asset LIMIT $4";

    LOOKS_DUE = "SELECT at, kind, tenant, name FROM mk_looks WHERE at <= $1 AND (at, kind, tenant, name) > ($2, $3, $4, $5) \
        ORDER BY at, kind, tenant, name LIMIT $6";
    LOOKS_OF = "SELECT at, kind, tenant, name FROM mk_looks WHERE tenant = $4 AND at <= $1 AND (at, kind, name) > ($2, $3, $5) \
        ORDER BY at, kind, name LIMIT $6";
    LOOKS_MOVE = "WITH gone AS (DELETE FROM mk_looks l USING UNNEST($1::bigint[], $2::smallint[], $3::text[], $4::bytea[]) \
        AS u(at, kind, tenant, name) WHERE l.at = u.at AND l.kind = u.kind AND l.tenant = u.tenant AND l.name = u.name) \
        INSERT INTO mk_looks (at, kind, tenant, name) SELECT at, kind, tenant, name \
        FROM UNNEST($5::bigint[], $6::smallint[], $7::text[], $8::bytea[]) AS u(at, kind, tenant, name) \
        ON CONFLICT DO NOTHING";

    REVOKE = "WITH kept AS (INSERT INTO mk_revoked (tenant, name, until) VALUES ($1, $2, $3) ON CONFLICT (tenant, name) \
        DO UPDATE SET until = GREATEST(mk_revoked.until, EXCLUDED.until)) \
        INSERT INTO mk_tidy (at, kind, tenant, name) VALUES ($3, 1, $1, $2) ON CONFLICT DO NOTHING";
    REVOKED = "SELECT count(*) FROM mk_revoked WHERE tenant = $1 AND name = $2";

    URLS_NEW = "WITH new AS (INSERT INTO mk_urls (tenant, name, label, until, uses, record) SELECT $1, name, label, until, uses, record \
        FROM UNNEST($2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bytea[]) AS u(name, label, until, uses, record) \
        ON CONFLICT DO NOTHING RETURNING name, until) \
        INSERT INTO mk_tidy (at, kind, tenant, name) SELECT until, 2, $1, name FROM new ON CONFLICT DO NOTHING";
    URLS_READ = "SELECT u.name, u.uses, u.record, EXISTS (SELECT 1 FROM mk_revoked v WHERE v.tenant = u.tenant AND v.name = u.name) \
        FROM mk_urls u WHERE u.tenant = $1 AND u.name = ANY($2::bytea[]) ORDER BY u.name";
    URLS_LABEL = "SELECT u.name, u.uses, u.record, EXISTS (SELECT 1 FROM mk_revoked v WHERE v.tenant = u.tenant AND v.name = u.name) \
        FROM mk_urls u WHERE u.tenant = $1 AND u.label = $2 AND u.name > $3 ORDER BY u.name LIMIT $4";
    URLS_REVOKE = "WITH kept AS (INSERT INTO mk_revoked (tenant, name, until) SELECT $1, name, until \
        FROM UNNEST($2::bytea[], $3::bigint[]) AS u(name, until) ON CONFLICT (tenant, name) \
        DO UPDATE SET until = GREATEST(mk_revoked.until, EXCLUDED.until)) \
        INSERT INTO mk_tidy (at, kind, tenant, name) SELECT until, 1, $1, name \
        FROM UNNEST($2::bytea[], $3::bigint[]) AS u(name, until) ON CONFLICT DO NOTHING";
    USE_TAKE = "UPDATE mk_urls u SET uses = u.uses - 1 WHERE u.tenant = $1 AND u.name = $2 AND u.uses > 0 \
        AND NOT EXISTS (SELECT 1 FROM mk_revoked v WHERE v.tenant = u.tenant AND v.name = u.name)";
    EPOCH_RAISE = "INSERT INTO mk_epochs (tenant, epoch) VALUES ($1, 1) \
        ON CONFLICT (tenant) DO UPDATE SET epoch = mk_epochs.epoch + 1 RETURNING epoch";
    EPOCH_RESTORE = "INSERT INTO mk_epochs (tenant, epoch) VALUES ($1, $2) \
        ON CONFLICT (tenant) DO UPDATE SET epoch = GREATEST(mk_epochs.epoch, EXCLUDED.epoch)";
    ASSETS_NAMES = "SELECT asset FROM mk_assets WHERE tenant = $1 AND asset > $2 ORDER BY asset LIMIT $3";
    ASSETS_LOCK = "SELECT record, look, holds, claim FROM mk_assets WHERE tenant = $1 AND asset = ANY($2::bytea[]) \
        ORDER BY asset FOR UPDATE";

    USED_NEW = "INSERT INTO mk_used (tenant, bytes, assets) VALUES ($1, $2, $3)";
    USED_FOLD = "WITH gone AS (DELETE FROM mk_used WHERE tenant = $1 RETURNING bytes, assets) \
        INSERT INTO mk_usage (tenant, bytes, assets) \
        SELECT $1, COALESCE(sum(bytes), 0)::bigint, COALESCE(sum(assets), 0)::bigint FROM gone ON CONFLICT (tenant) \
        DO UPDATE SET bytes = mk_usage.bytes + EXCLUDED.bytes, assets = mk_usage.assets + EXCLUDED.assets";
    USED_OLDEST = "SELECT number FROM mk_used ORDER BY number LIMIT $1 FOR UPDATE SKIP LOCKED";
    USED_FOLD_SOME = "WITH gone AS (DELETE FROM mk_used WHERE number = ANY($1::bigint[]) RETURNING tenant, bytes, assets) \
        INSERT INTO mk_usage (tenant, bytes, assets) \
        SELECT tenant, sum(bytes)::bigint, sum(assets)::bigint FROM gone GROUP BY tenant ORDER BY tenant \
        ON CONFLICT (tenant) \
        DO UPDATE SET bytes = mk_usage.bytes + EXCLUDED.bytes, assets = mk_usage.assets + EXCLUDED.assets";
    USAGE = "SELECT \
        COALESCE((SELECT u.bytes FROM mk_usage u WHERE u.tenant = $1), 0) + \
        COALESCE((SELECT sum(d.bytes) FROM mk_used d WHERE d.tenant = $1), 0)::bigint, \
        COALESCE((SELECT u.assets FROM mk_usage u WHERE u.tenant = $1), 0) + \
        COALESCE((SELECT sum(d.assets) FROM mk_used d WHERE d.tenant = $1), 0)::bigint, \
        (SELECT LEAST(COALESCE(sum(r.bytes), 0), 9223372036854775807)::bigint FROM mk_reserved r WHERE r.tenant = $1), \
        (SELECT count(*) FROM mk_reserved r WHERE r.tenant = $1), \
        (SELECT r.bytes FROM mk_reserved r WHERE r.tenant = $1 AND r.blob = $2)";
    USAGE_WALK = "SELECT asset, CASE WHEN state = 'live' THEN bytes END FROM mk_assets \
        WHERE tenant = $1 AND asset > $2 ORDER BY asset LIMIT $3";
    RESERVED_NEW = "WITH new AS (INSERT INTO mk_blobs (tenant, blob, state, since, holders, asset) \
        VALUES ($1, $2, 0, $3, 0, $4) ON CONFLICT DO NOTHING RETURNING since), \
        kept AS (INSERT INTO mk_reserved (tenant, blob, bytes) SELECT $1, $2, $5::bigint FROM new) \
        INSERT INTO mk_uploads (at, tenant, blob) SELECT since, $1, $2 FROM new";
    RESERVED_PUT = "INSERT INTO mk_reserved (tenant, blob, bytes) VALUES ($1, $2, $3) \
        ON CONFLICT (tenant, blob) DO UPDATE SET bytes = GREATEST(mk_reserved.bytes, EXCLUDED.bytes)";

    TIDY_NEW = "INSERT INTO mk_tidy (at, kind, tenant, name) VALUES ($1, 0, $2, $3) ON CONFLICT DO NOTHING";
    TIDY_DUE = "SELECT at, kind, tenant, name FROM mk_tidy WHERE at <= $1 ORDER BY at, kind, tenant, name LIMIT $2 \
        FOR UPDATE SKIP LOCKED";
    TIDY_DROP = "DELETE FROM mk_tidy t USING UNNEST($1::bigint[], $2::smallint[], $3::text[], $4::bytea[]) \
        AS u(at, kind, tenant, name) WHERE t.at = u.at AND t.kind = u.kind AND t.tenant = u.tenant AND t.name = u.name";
    CLAIMS_DROP = names_drop!("mk_claims");
    CLAIMS_LATER = names_later!("mk_claims", "0");
    REVOKED_DROP = names_drop!("mk_revoked");
    REVOKED_LATER = names_later!("mk_revoked", "1");
    URLS_DROP = names_drop!("mk_urls");
    URLS_LATER = names_later!("mk_urls", "2");

    AUDIT_NEW = "INSERT INTO mk_audit_waiting (tenant, event) SELECT u.tenant, u.event \
        FROM UNNEST($1::text[], $2::bytea[]) WITH ORDINALITY AS u(tenant, event, n) ORDER BY u.n";
    OWED_NEW = "INSERT INTO mk_owed (tenant, name, record) SELECT tenant, name, record \
        FROM UNNEST($1::text[], $2::bytea[], $3::bytea[]) AS u(tenant, name, record) ON CONFLICT DO NOTHING";
    OWED_LIST = "SELECT tenant, record FROM mk_owed WHERE (tenant, name) > ($1, $2) ORDER BY tenant, name LIMIT $3";
    OWED_PAID = "DELETE FROM mk_owed o USING UNNEST($1::text[], $2::bytea[]) AS u(tenant, name) \
        WHERE o.tenant = u.tenant AND o.name = u.name";
    HOLD_NEXT = "INSERT INTO mk_hold_numbers (tenant, number) VALUES ($1, 1) \
        ON CONFLICT (tenant) DO UPDATE SET number = mk_hold_numbers.number + 1 RETURNING number";
    HOLD_NUMBER_RAISE = "INSERT INTO mk_hold_numbers (tenant, number) VALUES ($1, $2) \
        ON CONFLICT (tenant) DO UPDATE SET number = GREATEST(mk_hold_numbers.number, EXCLUDED.number)";

    SEAL_TURN = "SELECT name FROM mk_turns WHERE name = 'seal' FOR UPDATE";
    SEAL_WAITING = "SELECT number, tenant, event FROM mk_audit_waiting ORDER BY number LIMIT $1";
    SEAL_HEADS = "SELECT tenant, seq, hash FROM mk_audit_heads WHERE tenant = ANY($1::text[])";
    SEAL_ROWS = "INSERT INTO mk_audit_rows (tenant, seq, record) SELECT tenant, seq, record \
        FROM UNNEST($1::text[], $2::bigint[], $3::bytea[]) AS u(tenant, seq, record)";
    SEAL_HEADS_PUT = "INSERT INTO mk_audit_heads (tenant, seq, hash) SELECT tenant, seq, hash \
        FROM UNNEST($1::text[], $2::bigint[], $3::bytea[]) AS u(tenant, seq, hash) \
        ON CONFLICT (tenant) DO UPDATE SET seq = EXCLUDED.seq, hash = EXCLUDED.hash";
    SEAL_DONE = "DELETE FROM mk_audit_waiting WHERE number = ANY($1::bigint[])";
    AUDIT_ROWS = "SELECT record FROM mk_audit_rows WHERE tenant = $1 AND seq > $2 ORDER BY seq LIMIT $3";

    RESUMABLE_NEW = "INSERT INTO mk_resumable (tenant, upload, record) VALUES ($1, $2, $3)";
    RESUMABLE = "SELECT record FROM mk_resumable WHERE tenant = $1 AND upload = $2";
    RESUMABLE_LOCK = "SELECT record FROM mk_resumable WHERE tenant = $1 AND upload = $2 FOR UPDATE";
    RESUMABLE_PUT = "UPDATE mk_resumable SET record = $3 WHERE tenant = $1 AND upload = $2";
    RESUMABLE_DROP = "DELETE FROM mk_resumable WHERE tenant = $1 AND upload = $2";
    RESUMABLE_LOOK_IN = "INSERT INTO mk_resumable_looks (at, tenant, upload) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    RESUMABLE_LOOK_OUT = "DELETE FROM mk_resumable_looks WHERE at = $1 AND tenant = $2 AND upload = $3";
    RESUMABLES_DUE = "SELECT tenant, upload FROM mk_resumable_looks WHERE at <= $1 ORDER BY at, tenant, upload LIMIT $2";
    RESUMABLE_PART_NEW = "INSERT INTO mk_resumable_parts (tenant, upload, begins, bytes, blob) VALUES ($1, $2, $3, $4, $5)";
    RESUMABLE_PARTS = "SELECT begins, bytes, blob FROM mk_resumable_parts \
        WHERE tenant = $1 AND upload = $2 AND begins >= $3 ORDER BY begins LIMIT $4";
    RESUMABLE_PARTS_DROP = "DELETE FROM mk_resumable_parts WHERE tenant = $1 AND upload = $2 AND begins <= $3";
    RESERVED_COUNT = "SELECT count(*) FROM (SELECT 1 FROM mk_reserved WHERE tenant = $1 LIMIT $2) r";
    RESERVED_DROP = "DELETE FROM mk_reserved WHERE tenant = $1 AND blob = $2";
}
