-- Changes of a kernel's code (`tuner evolve`). One row for each request to a mutator, whatever came of
-- it; it is committed before it is announced.
CREATE TABLE evolutions (
    id            INTEGER PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    kernel        TEXT NOT NULL,
    -- The shipped template that it began with.
    template_hash TEXT NOT NULL,
    device        TEXT NOT NULL,
    timing        TEXT NOT NULL CHECK (timing IN ('measured', 'predicted')),
    -- Decimal text: a seed is 64 bits unsigned.
    seed          TEXT NOT NULL,
    mutator       TEXT NOT NULL,
    settings      TEXT NOT NULL CHECK (json_valid(settings)),
    -- `running` without a living process: it was killed, and can be resumed.
    state         TEXT NOT NULL CHECK (state IN ('running', 'interrupted', 'finished')),
    started_at    TEXT NOT NULL,
    ended_at      TEXT
) STRICT;

CREATE TABLE changes (
    id            INTEGER PRIMARY KEY,
    evolution     INTEGER NOT NULL REFERENCES evolutions (id),
    round         INTEGER NOT NULL,
    -- Null: the shipped template.
    parent        INTEGER REFERENCES changes (id),
    mutator       TEXT NOT NULL,
    note          TEXT NOT NULL,
    -- Unified diff against the parent; empty where there is no new source.
    diff          TEXT NOT NULL,
    -- Null where the answer could not be applied.
    source        TEXT,
    space         TEXT CHECK (space IS NULL OR json_valid(space)),
    tokens        INTEGER NOT NULL,
    cost          REAL NOT NULL,
    seconds       REAL NOT NULL,
    outcome       TEXT NOT NULL CHECK (outcome IN ('no_answer', 'malformed', 'refused', 'unchanged',
                      'failed', 'not_better', 'within_resolution', 'predicted_better', 'accepted')),
    -- The gate's verdict; null: it never reached the gate.
    verdict       TEXT,
    detail        TEXT NOT NULL,
    -- Hash of the machine code, and figures by which novelty is judged.
    code          TEXT NOT NULL,
    behaviour     TEXT NOT NULL CHECK (json_valid(behaviour)),
    made_at       TEXT NOT NULL,
    UNIQUE (evolution, round)
) STRICT;

CREATE TABLE change_times (
    change       INTEGER NOT NULL REFERENCES changes (id),
    problem      TEXT NOT NULL,
    us           REAL NOT NULL,
    -- Best times of the nearest accepted ancestor and of the shipped template.
    incumbent_us REAL NOT NULL,
    shipped_us   REAL NOT NULL,
    config       TEXT NOT NULL CHECK (json_valid(config)),
    PRIMARY KEY (change, problem)
) STRICT;

-- Runs that tuned a change. They are known to searches, and never rank: the leaderboard is of the
-- templates in the project.
CREATE TABLE change_runs (
    run TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
