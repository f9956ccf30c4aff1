//! What somebody can do who has the index itself in hand: rows of the audit log, behind the service's back.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use mediakeep_storage::TenantId;
use mediakeep_storage::index::Upkeep;
use mediakeep_storage::index::sled::{SledIndex, SledOptions};
use serde_json::Value;
use sqlx::{Connection, PgConnection, Row};

use super::index::Home;

/// The version that stands before each record.
const VERSION: u8 = 1;

impl Home {
    /// A tenant's sealed rows: under which number each lies, and what it says.
    pub async fn audit_rows(&self, tenant: &str) -> Vec<(u64, Value)> {
        if let Some(path) = self.path() {
            // The embedded index writes them in a form of its own, and reads JSON as well.
            let index = SledIndex::open(path, SledOptions::default()).expect("nobody else has it");
            let tenant = TenantId::parse(tenant).expect("a tenant");
            let rows = index.audit_rows(&tenant, 0, usize::MAX).await.expect("rows");
            return rows.iter().map(|row| (row.seq, serde_json::to_value(row).expect("a row is JSON"))).collect();
        }
        let query = sqlx::query("SELECT seq, record FROM mk_audit_rows WHERE tenant = $1 ORDER BY seq");
        let rows = query.bind(tenant).fetch_all(&mut self.connection().await).await.expect("rows");
        let raw = rows.iter().map(|row| (row.get::<i64, _>(0).unsigned_abs(), row.get::<Vec<u8>, _>(1)));
        raw.map(|(seq, record)| (seq, serde_json::from_slice(&record[1..]).expect("JSON"))).collect()
    }

    /// Puts these in place of them.
    pub async fn put_audit_rows(&self, tenant: &str, rows: &[(u64, Value)]) {
        let record = |value: &Value| [&[VERSION][..], value.to_string().as_bytes()].concat();
        let Some(path) = self.path() else {
            let mut connection = self.connection().await;
            let clear = sqlx::query("DELETE FROM mk_audit_rows WHERE tenant = $1").bind(tenant);
            clear.execute(&mut connection).await.expect("a database");
            for (seq, value) in rows {
                let put = sqlx::query("INSERT INTO mk_audit_rows (tenant, seq, record) VALUES ($1, $2, $3)");
                let put = put.bind(tenant).bind(i64::try_from(*seq).expect("small")).bind(record(value));
                put.execute(&mut connection).await.expect("a database");
            }
            return;
        };
        let db = sled::open(path).expect("nobody else has it");
        for key in db.scan_prefix(prefix(tenant)).keys() {
            db.remove(key.expect("a key")).expect("a disk");
        }
        for (seq, value) in rows {
            db.insert([prefix(tenant), seq.to_be_bytes().to_vec()].concat(), record(value)).expect("a disk");
        }
        db.flush().expect("a disk");
        drop(db);
        closed(path);
    }

    /// Puts another sum in the place of what the tenant's assets come to.
    pub async fn put_usage(&self, tenant: &str, bytes: i64, assets: i64) {
        let Some(path) = self.path() else {
            let mut connection = self.connection().await;
            for statement in ["DELETE FROM mk_used WHERE tenant = $1", "DELETE FROM mk_usage WHERE tenant = $1"] {
                sqlx::query(statement).bind(tenant).execute(&mut connection).await.expect("a database");
            }
            let put = sqlx::query("INSERT INTO mk_usage (tenant, bytes, assets) VALUES ($1, $2, $3)");
            put.bind(tenant).bind(bytes).bind(assets).execute(&mut connection).await.expect("a database");
            return;
        };
        let db = sled::open(path).expect("nobody else has it");
        let sum = serde_json::json!({"bytes": bytes, "assets": assets}).to_string();
        let key = [b"Q", tenant.as_bytes(), &[0]].concat();
        db.insert(key, [&[VERSION][..], sum.as_bytes()].concat()).expect("a disk");
        db.flush().expect("a disk");
        drop(db);
        closed(path);
    }

    /// Has announced uploads be as silent as those of a process that died minutes ago. Where several processes may have the index, a sweep
    /// waits for that; where one has it, what others have begun is nobody's at once.
    pub async fn uploads_fall_silent(&self) {
        if self.path().is_some() {
            return;
        }
        let mut connection = self.connection().await;
        for statement in [
            "UPDATE mk_uploads SET at = at - 600000000",
            "UPDATE mk_blobs SET since = since - 600000000 WHERE state = 0",
        ] {
            sqlx::query(statement).execute(&mut connection).await.expect("a database");
        }
    }

    fn path(&self) -> Option<&Path> {
        self.url().strip_prefix("sled://").map(Path::new)
    }

    async fn connection(&self) -> PgConnection {
        PgConnection::connect(self.url()).await.expect("a database")
    }
}

/// Waits until sled, whose threads end a moment after its handle, has let go of its lock.
fn closed(path: &Path) {
    while File::open(path.join("db")).expect("a file").try_lock().is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn prefix(tenant: &str) -> Vec<u8> {
    [b"E", tenant.as_bytes(), &[0]].concat()
}
