-- The best time of every candidate on every device, in order: the first rows of a leaderboard are
-- an index scan, whatever the number of measurements. Kept by a trigger, so that no writer can
-- forget it.

CREATE TABLE best_times (
    problem   INTEGER NOT NULL REFERENCES problems (id),
    device    INTEGER NOT NULL REFERENCES devices (id),
    kind      TEXT NOT NULL,
    candidate INTEGER NOT NULL REFERENCES candidates (id),
    verdict   INTEGER NOT NULL REFERENCES verdicts (id),
    p50_us    REAL NOT NULL,
    PRIMARY KEY (candidate, device, kind)
) STRICT, WITHOUT ROWID;

INSERT INTO best_times (problem, device, kind, candidate, verdict, p50_us)
SELECT problem, device, kind, candidate, verdict, p50_us FROM (
    SELECT t.problem, r.device, m.kind, v.candidate, v.id AS verdict, m.p50_us,
           row_number() OVER (PARTITION BY v.candidate, r.device, m.kind
                              ORDER BY m.p50_us, v.id) AS place
    FROM measurements m JOIN verdicts v ON v.id = m.verdict JOIN tasks t ON t.id = v.task
    JOIN runs r ON r.id = t.run WHERE v.verdict = 'ok')
WHERE place = 1;

CREATE INDEX best_times_ranked ON best_times (problem, device, kind, p50_us);

CREATE TRIGGER best_times_kept AFTER INSERT ON measurements BEGIN
    INSERT INTO best_times (problem, device, kind, candidate, verdict, p50_us)
    SELECT t.problem, r.device, new.kind, v.candidate, v.id, new.p50_us
    FROM verdicts v JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run
    WHERE v.id = new.verdict AND v.verdict = 'ok'
    ON CONFLICT (candidate, device, kind)
    DO UPDATE SET verdict = excluded.verdict, p50_us = excluded.p50_us
    WHERE excluded.p50_us < p50_us;
END;
