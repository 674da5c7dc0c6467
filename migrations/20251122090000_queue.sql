-- What `tuner serve` is asked to do, and which daemon owns this database.

CREATE TABLE queue (
    -- The order in which runs begin, within a device.
    id           INTEGER PRIMARY KEY,
    -- The run's name from the moment it is asked for; its row in `runs` comes when it begins.
    name         TEXT NOT NULL UNIQUE,
    -- One engine a device: runs with the same text here wait for one another.
    device       TEXT NOT NULL,
    request      TEXT NOT NULL CHECK (json_valid(request)),
    -- Where names in the request are looked for. Null: it came over HTTP, and may name only what
    -- lies in the folders that the daemon was started with.
    folder       TEXT,
    state        TEXT NOT NULL
                 CHECK (state IN ('queued', 'running', 'finished', 'stopped', 'failed')),
    -- Why it failed, or how it ended, for people.
    message      TEXT NOT NULL DEFAULT '',
    -- Wall time its engine was at work, before the run was last interrupted.
    spent_s      REAL NOT NULL DEFAULT 0,
    submitted_at TEXT NOT NULL,
    started_at   TEXT,
    ended_at     TEXT
) STRICT;

CREATE INDEX queue_open ON queue (id) WHERE state IN ('queued', 'running');

-- One row at most: the process that owns the database, and where it listens.
CREATE TABLE daemon (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    owner      TEXT NOT NULL,
    address    TEXT NOT NULL,
    -- Random, and told by /healthz: another service on the same port is not this daemon.
    instance   TEXT NOT NULL,
    started_at TEXT NOT NULL
) STRICT;
