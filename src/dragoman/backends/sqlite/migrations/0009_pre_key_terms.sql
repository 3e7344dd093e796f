-- How often a key may call and what it may spend; none where nobody said so. Changed without its other words.
ALTER TABLE api_key ADD COLUMN terms BLOB;
