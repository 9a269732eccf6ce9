-- The servers that share the store and form a cluster. Times are those of the database's clock.
CREATE TABLE nodes (
	name    {id} PRIMARY KEY,
	boot    {id} NOT NULL,  -- changes with each start of the server
	address TEXT NOT NULL,  -- where the others reach it
	token   TEXT NOT NULL,  -- the key of their requests
	version TEXT NOT NULL,
	about   TEXT NOT NULL,  -- what it tells of itself, as JSON
	leaving INTEGER NOT NULL, -- 1: it is shutting down
	started BIGINT NOT NULL, -- in nanoseconds since 1970
	seen    BIGINT NOT NULL -- when it last wrote the row, likewise
);
-- What the servers of a cluster have counted of owners with limits.
CREATE TABLE limits (
	owner {id} PRIMARY KEY,
	state TEXT NOT NULL, -- as JSON
	seen  BIGINT NOT NULL -- when it was last changed, in nanoseconds since 1970
);
