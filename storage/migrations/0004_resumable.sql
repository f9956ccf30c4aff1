-- Uploads that come in parts. The page of storage/src/resumable.rs says what may happen to one.

CREATE TABLE IF NOT EXISTS mk_resumable (
  tenant TEXT COLLATE "C" NOT NULL,
  upload BYTEA NOT NULL,
  record BYTEA NOT NULL,
  PRIMARY KEY (tenant, upload)
) WITH (fillfactor = 70);

-- The parts of an upload, by where in it they begin.
CREATE TABLE IF NOT EXISTS mk_resumable_parts (
  tenant TEXT COLLATE "C" NOT NULL,
  upload BYTEA NOT NULL,
  begins BIGINT NOT NULL,
  bytes  BIGINT NOT NULL,
  blob   BYTEA NOT NULL,
  PRIMARY KEY (tenant, upload, begins)
);

-- When an upload is to be looked at; what is reserved for it stands in mk_reserved, under its own name.
CREATE TABLE IF NOT EXISTS mk_resumable_looks (
  at     BIGINT NOT NULL,
  tenant TEXT COLLATE "C" NOT NULL,
  upload BYTEA NOT NULL,
  PRIMARY KEY (at, tenant, upload)
);
