-- Turns whose answers are being made. What a server that crashed leaves here is found by its age.
CREATE TABLE unfinished (
	id    {id} PRIMARY KEY,
	alive BIGINT NOT NULL -- when the server that makes the answer last said so, in nanoseconds since 1970
);
