-- A commit does not name what was measured on a dirty tree. The SHA-256 of the diff (template,
-- headers, search space against the commit) does: two results of one commit and one hash are of
-- the same text.
ALTER TABLE provenance ADD COLUMN diff_hash TEXT;
