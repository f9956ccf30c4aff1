-- Artifacts: documents of runs, and which assets they name.

CREATE TABLE IF NOT EXISTS mk_artifacts (
  tenant   TEXT COLLATE "C" NOT NULL,
  run      TEXT COLLATE "C" NOT NULL,
  artifact TEXT COLLATE "C" NOT NULL,
  record   BYTEA NOT NULL,
  PRIMARY KEY (tenant, run, artifact)
);

CREATE TABLE IF NOT EXISTS mk_artifact_assets (
  tenant   TEXT COLLATE "C" NOT NULL,
  asset    BYTEA NOT NULL,
  run      TEXT COLLATE "C" NOT NULL,
  artifact TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, asset, run, artifact)
);

-- The last number of the run's artifacts. In the run's own row, so that a putting and an end of the run meet there.
ALTER TABLE mk_runs ADD COLUMN IF NOT EXISTS artifacts BIGINT NOT NULL DEFAULT 0;
