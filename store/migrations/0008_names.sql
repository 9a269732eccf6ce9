-- What an owner makes of a conversation.
ALTER TABLE families ADD COLUMN name TEXT NOT NULL DEFAULT ''; -- empty: it has its title
ALTER TABLE families ADD COLUMN pinned BOOLEAN NOT NULL DEFAULT FALSE;
