-- What a list of conversations shows.
ALTER TABLE families ADD COLUMN owner {id} NOT NULL DEFAULT '';
ALTER TABLE families ADD COLUMN dialect TEXT NOT NULL DEFAULT ''; -- empty: the conversation is from before this migration
ALTER TABLE families ADD COLUMN title TEXT NOT NULL DEFAULT '';
UPDATE families SET owner = coalesce((SELECT t.owner FROM turns t WHERE t.id = families.id), '');
CREATE INDEX families_owner ON families (owner, newest, id);
