-- Turns of conversations. There are no foreign keys: whoever changes a family locks its row first, which says the same and
-- doesn't cost an index for each reference.

-- A family is a conversation with all of its branches; its id is that of its first turn.
CREATE TABLE families (
	id     {id} PRIMARY KEY,
	newest BIGINT NOT NULL, -- when its newest turn was made; 0: it is being removed
	turns  BIGINT NOT NULL
){keyed};
CREATE INDEX families_newest ON families (newest);

CREATE TABLE turns (
	id      {id} PRIMARY KEY,
	parent  {id},
	family  {id} NOT NULL,
	owner   {id} NOT NULL,  -- empty: anonymous
	model   TEXT NOT NULL,
	status  TEXT NOT NULL,
	created BIGINT NOT NULL,   -- in nanoseconds since 1970
	depth   INTEGER NOT NULL,  -- 0: the first of its family
	hidden  BOOLEAN NOT NULL DEFAULT FALSE, -- deleted, but others continue it
	images  TEXT NOT NULL,     -- the hashes of its images, each once, with spaces between
	body    {bytes} NOT NULL   -- JSON
);
CREATE INDEX turns_family ON turns (family, parent, created);

-- What images are made of, once for all turns that have them.
CREATE TABLE blobs (
	hash {id} PRIMARY KEY, -- SHA-256 in hexadecimal
	refs BIGINT NOT NULL,  -- how many turns have it
	data {bytes} NOT NULL
);

-- How many turns there are is the sum of these. There are several, so that writers seldom wait for each other.
CREATE TABLE counters (
	shard INTEGER PRIMARY KEY,
	turns BIGINT NOT NULL
);
INSERT INTO counters (shard, turns) VALUES
	(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0), (10, 0), (11, 0), (12, 0), (13, 0), (14, 0), (15, 0);
