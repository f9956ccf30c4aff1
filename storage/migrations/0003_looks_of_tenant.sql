-- What one tenant's preview walks: its own looks, however many others have.
CREATE INDEX IF NOT EXISTS mk_looks_of_tenant ON mk_looks (tenant, at, kind, name);
