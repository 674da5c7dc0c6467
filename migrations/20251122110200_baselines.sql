-- What other programs take for the same problem on the same GPU. A command that was absent, hung or
-- printed rubbish leaves a row with why: a missing figure is never guessed.
CREATE TABLE baselines (
    id           INTEGER PRIMARY KEY,
    task         INTEGER NOT NULL REFERENCES tasks (id),
    command      TEXT NOT NULL CHECK (json_valid(command)),
    name         TEXT,
    version      TEXT,
    p50_us       REAL CHECK (p50_us > 0),
    p90_us       REAL CHECK (p90_us > 0),
    -- JSON array of visits: when (before or after the run), p50_us, p90_us, and what the reference
    -- took at the time.
    visits       TEXT NOT NULL CHECK (json_valid(visits)),
    -- Median time of the reference over the visits; the unit that drift is taken out by.
    reference    TEXT,
    reference_us REAL,
    failure      TEXT,
    measured_at  TEXT NOT NULL,
    CHECK ((p50_us IS NULL) = (failure IS NOT NULL))
) STRICT;

CREATE INDEX baselines_by_task ON baselines (task);
