-- The server of a cluster that makes an answer (nodes.boot); empty: none of a cluster.
ALTER TABLE unfinished ADD COLUMN maker {id} NOT NULL DEFAULT '';
