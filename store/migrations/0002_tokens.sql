-- Who may use the server, and what was used.

CREATE TABLE tokens (
	id        {id} PRIMARY KEY, -- the part of a token that is no secret
	hash      {id} NOT NULL,    -- SHA-256 of the whole token in hexadecimal
	name      TEXT NOT NULL,
	rights    TEXT NOT NULL,    -- JSON
	created   BIGINT NOT NULL,  -- these in nanoseconds since 1970
	expires   BIGINT NOT NULL,  -- 0: never
	last_used BIGINT NOT NULL   -- 0: never
);

CREATE TABLE token_usage (
	day      INTEGER NOT NULL, -- since 1970, in UTC
	owner    {id} NOT NULL,    -- empty: nobody in particular
	model    {id} NOT NULL,
	requests BIGINT NOT NULL,
	tokens_in  BIGINT NOT NULL,
	tokens_out BIGINT NOT NULL,
	PRIMARY KEY (day, owner, model)
);
