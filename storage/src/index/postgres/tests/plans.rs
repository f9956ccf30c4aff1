//! No statement reads all of a table that grows.
