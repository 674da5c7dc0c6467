-- What people write beside a run. A run has its name from the moment it is asked for, so a note may be
-- there before the run begins.

CREATE TABLE notes (
    run        TEXT PRIMARY KEY,
    text       TEXT NOT NULL,
    changed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
