-- Where the search space lay, so that a result whose template was edited since can be told to be
-- stale, whatever directory it is asked from. Null on replay.
ALTER TABLE tasks ADD COLUMN space_path TEXT;
