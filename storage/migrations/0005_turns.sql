-- What one process does at a time, of all that share the index: whoever does it has locked its row.
CREATE TABLE IF NOT EXISTS mk_turns (
  name TEXT COLLATE "C" PRIMARY KEY
);
INSERT INTO mk_turns (name) VALUES ('removal') ON CONFLICT DO NOTHING;
