-- The index as it first was. The page of storage/src/index/postgres.rs says what is in a column, and why.
--
-- Plain SQL that wire-compatible databases run too. A migration may be run again after it stopped half-way, where a database
-- commits each statement of this kind by itself: hence IF NOT EXISTS throughout.
--
-- The rows that transitions change (assets, runs, blobs, claims) have no index but their key, so that a change leaves the indexes
-- alone; what is looked for by time stands in tables of its own. The room that fillfactor leaves lets a changed row stay on its page.

-- The claim is the idempotency key under which the answer of its request is kept; holds are those on the asset itself.
CREATE TABLE IF NOT EXISTS mk_assets (
  tenant    TEXT COLLATE "C" NOT NULL,
  asset     BYTEA NOT NULL,
  state     TEXT NOT NULL,
  kind      BYTEA NOT NULL,
  mime_type BYTEA NOT NULL,
  bytes     BIGINT NOT NULL,
  blob      BYTEA NOT NULL,
  look      BIGINT,
  claim     BYTEA,
  holds     BIGINT NOT NULL,
  record    BYTEA NOT NULL,
  PRIMARY KEY (tenant, asset)
) WITH (fillfactor = 85);

CREATE TABLE IF NOT EXISTS mk_runs (
  tenant      TEXT COLLATE "C" NOT NULL,
  run         TEXT COLLATE "C" NOT NULL,
  open        BOOLEAN NOT NULL,
  end_at      BIGINT,
  end_default BOOLEAN NOT NULL,
  erased_at   BIGINT,
  look        BIGINT,
  walked      BYTEA,
  holds       BIGINT NOT NULL,
  record      BYTEA NOT NULL,
  PRIMARY KEY (tenant, run)
) WITH (fillfactor = 70);

-- The run references the asset; an asset's references are counted from 0 by their places.
CREATE TABLE IF NOT EXISTS mk_refs (
  tenant TEXT COLLATE "C" NOT NULL,
  run    TEXT COLLATE "C" NOT NULL,
  asset  BYTEA NOT NULL,
  place  BIGINT NOT NULL,
  PRIMARY KEY (tenant, run, asset)
);
CREATE INDEX IF NOT EXISTS mk_refs_of_asset ON mk_refs (tenant, asset, place DESC, run);

-- Holds on an asset (kind 0) or a run (kind 1), which counts them in its own row.
CREATE TABLE IF NOT EXISTS mk_holds (
  tenant TEXT COLLATE "C" NOT NULL,
  kind   SMALLINT NOT NULL,
  thing  BYTEA NOT NULL,
  name   TEXT COLLATE "C" NOT NULL,
  record BYTEA NOT NULL,
  PRIMARY KEY (tenant, kind, thing, name)
);

-- Assets that have or had the same bytes; what is erased is not among them.
CREATE TABLE IF NOT EXISTS mk_same (
  tenant TEXT COLLATE "C" NOT NULL,
  sha256 BYTEA NOT NULL,
  asset  BYTEA NOT NULL,
  PRIMARY KEY (tenant, sha256, asset)
);

-- When something is to be looked at: kind 0 an asset, kind 1 a run.
CREATE TABLE IF NOT EXISTS mk_looks (
  at     BIGINT NOT NULL,
  kind   SMALLINT NOT NULL,
  tenant TEXT COLLATE "C" NOT NULL,
  name   BYTEA NOT NULL,
  PRIMARY KEY (at, kind, tenant, name)
);

-- State 0 announced (since: last sign of life), 1 held, 2 condemned, 3 discarded (both, since: removed from then on), 4 doomed.
CREATE TABLE IF NOT EXISTS mk_blobs (
  tenant  TEXT COLLATE "C" NOT NULL,
  blob    BYTEA NOT NULL,
  state   SMALLINT NOT NULL,
  since   BIGINT,
  holders BIGINT NOT NULL,
  bytes   BIGINT,
  sha256  BYTEA,
  asset   BYTEA,
  PRIMARY KEY (tenant, blob)
) WITH (fillfactor = 70);

-- The blob that can be shared for these bytes.
CREATE TABLE IF NOT EXISTS mk_digests (
  tenant TEXT COLLATE "C" NOT NULL,
  sha256 BYTEA NOT NULL,
  blob   BYTEA NOT NULL,
  PRIMARY KEY (tenant, sha256)
);

CREATE TABLE IF NOT EXISTS mk_uploads (
  at     BIGINT NOT NULL,
  tenant TEXT COLLATE "C" NOT NULL,
  blob   BYTEA NOT NULL,
  PRIMARY KEY (at, tenant, blob)
);

-- Condemned and discarded blobs, by when they go.
CREATE TABLE IF NOT EXISTS mk_condemned (
  at     BIGINT NOT NULL,
  tenant TEXT COLLATE "C" NOT NULL,
  blob   BYTEA NOT NULL,
  PRIMARY KEY (at, tenant, blob)
);

CREATE TABLE IF NOT EXISTS mk_doomed (
  tenant TEXT COLLATE "C" NOT NULL,
  blob   BYTEA NOT NULL,
  PRIMARY KEY (tenant, blob)
);

-- Idempotency keys: held while asset is NULL, then the answer.
CREATE TABLE IF NOT EXISTS mk_claims (
  tenant      TEXT COLLATE "C" NOT NULL,
  name        BYTEA NOT NULL,
  holder      BYTEA NOT NULL,
  until       BIGINT NOT NULL,
  asset       BYTEA,
  fingerprint BYTEA,
  PRIMARY KEY (tenant, name)
) WITH (fillfactor = 70);

CREATE TABLE IF NOT EXISTS mk_revoked (
  tenant TEXT COLLATE "C" NOT NULL,
  name   BYTEA NOT NULL,
  until  BIGINT NOT NULL,
  PRIMARY KEY (tenant, name)
);

-- Delivery URLs; uses is NULL where they are not counted, and else how many are left, whatever the record says.
CREATE TABLE IF NOT EXISTS mk_urls (
  tenant TEXT COLLATE "C" NOT NULL,
  name   BYTEA NOT NULL,
  label  BYTEA,
  until  BIGINT NOT NULL,
  uses   BIGINT,
  record BYTEA NOT NULL,
  PRIMARY KEY (tenant, name)
) WITH (fillfactor = 85);
CREATE INDEX IF NOT EXISTS mk_urls_of_label ON mk_urls (tenant, label, name) WHERE label IS NOT NULL;

-- How often all of a tenant's URLs were revoked at once; no row: never.
CREATE TABLE IF NOT EXISTS mk_epochs (
  tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  epoch  BIGINT NOT NULL
);

-- What the live assets of a tenant come to: a sum, and what has been added to it and taken from it since.
CREATE TABLE IF NOT EXISTS mk_usage (
  tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  bytes  BIGINT NOT NULL,
  assets BIGINT NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS mk_used (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant TEXT COLLATE "C" NOT NULL,
  bytes  BIGINT NOT NULL,
  assets BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS mk_used_of_tenant ON mk_used (tenant);

-- What is reserved of a tenant's quota for an announced upload.
CREATE TABLE IF NOT EXISTS mk_reserved (
  tenant TEXT COLLATE "C" NOT NULL,
  blob   BYTEA NOT NULL,
  bytes  BIGINT NOT NULL,
  PRIMARY KEY (tenant, blob)
) WITH (fillfactor = 70);

-- Recovery records that are owed to the store, each by the digest of what it is.
CREATE TABLE IF NOT EXISTS mk_owed (
  tenant TEXT COLLATE "C" NOT NULL,
  name   BYTEA NOT NULL,
  record BYTEA NOT NULL,
  PRIMARY KEY (tenant, name)
);

-- The last number of a tenant's holds, placed or lifted; no row: none.
CREATE TABLE IF NOT EXISTS mk_hold_numbers (
  tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  number BIGINT NOT NULL
) WITH (fillfactor = 70);

-- When a claim (kind 0), a revocation (kind 1) or a URL (kind 2) may be past its time; then its row says whether it is.
CREATE TABLE IF NOT EXISTS mk_tidy (
  at     BIGINT NOT NULL,
  kind   SMALLINT NOT NULL,
  tenant TEXT COLLATE "C" NOT NULL,
  name   BYTEA NOT NULL,
  PRIMARY KEY (at, kind, tenant, name)
);

-- Audit events that wait for their place, in the order of writing; the numbers may have gaps.
CREATE TABLE IF NOT EXISTS mk_audit_waiting (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant TEXT COLLATE "C" NOT NULL,
  event  BYTEA NOT NULL
);

CREATE TABLE IF NOT EXISTS mk_audit_rows (
  tenant TEXT COLLATE "C" NOT NULL,
  seq    BIGINT NOT NULL,
  record BYTEA NOT NULL,
  PRIMARY KEY (tenant, seq)
);

CREATE TABLE IF NOT EXISTS mk_audit_heads (
  tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  seq    BIGINT NOT NULL,
  hash   BYTEA NOT NULL
) WITH (fillfactor = 70);

-- Rows that are locked for what one replica does at a time.
CREATE TABLE IF NOT EXISTS mk_turns (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY
);
INSERT INTO mk_turns (name) VALUES ('seal') ON CONFLICT DO NOTHING;
