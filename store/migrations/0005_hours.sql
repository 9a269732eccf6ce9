-- What was used in each hour of the last weeks. Older rows are deleted.
CREATE TABLE hourly_usage (
	hour     INTEGER NOT NULL, -- since 1970
	owner    {id} NOT NULL,    -- as in token_usage
	model    {id} NOT NULL,
	requests BIGINT NOT NULL,
	tokens_in  BIGINT NOT NULL,
	tokens_out BIGINT NOT NULL,
	PRIMARY KEY (hour, owner, model)
);
