-- How the results of a passed candidate were compared with the reference at the timed size. Null: it
-- did not pass, or its time is a recorded one. Rows from before did not note it.
ALTER TABLE verdicts ADD COLUMN compared TEXT
    CHECK (compared IN ('whole', 'sampled', 'smaller_problems', 'unknown'));
UPDATE verdicts SET compared = 'unknown' WHERE verdict = 'ok'
    AND id IN (SELECT verdict FROM measurements WHERE kind <> 'recorded');

-- Times of class 1 (not compared at the timed size) rank after all of class 0. The classes are those
-- of `Compared::rank_class`.
DROP TRIGGER best_times_kept;
DROP TRIGGER best_times_published;
DROP TRIGGER best_times_withdrawn;
DROP VIEW valid_times;
CREATE VIEW valid_times AS
SELECT t.problem, r.device, m.kind, v.candidate, v.id AS verdict, m.stage, m.p50_us, v.provenance,
       coalesce(v.compared IN ('smaller_problems', 'unknown'), 0) AS class
FROM tasks t JOIN runs r ON r.id = t.run JOIN verdicts v ON v.task = t.id
JOIN times m ON m.verdict = v.id
WHERE v.verdict = 'ok' AND NOT EXISTS (SELECT 1 FROM withdrawn w WHERE w.verdict = v.id);

-- Of a candidate's valid times that count which are compared at the timed size; of these the latest
-- of a final comparison, or else the fastest.
ALTER TABLE best_times ADD COLUMN class INTEGER NOT NULL DEFAULT 0;
UPDATE best_times SET class = 1 WHERE kind <> 'recorded';
DROP INDEX best_times_ranked;
CREATE INDEX best_times_ranked ON best_times (problem, device, kind, class, p50_us);

CREATE TRIGGER best_times_kept AFTER INSERT ON measurements BEGIN
    INSERT INTO best_times (problem, device, kind, candidate, verdict, class, p50_us)
    SELECT problem, device, kind, candidate, verdict, class, p50_us FROM valid_times
    WHERE verdict = new.verdict
    ON CONFLICT (candidate, device, kind)
    DO UPDATE SET verdict = excluded.verdict, class = excluded.class, p50_us = excluded.p50_us
    WHERE excluded.class < class OR excluded.class = class AND excluded.p50_us < p50_us
      AND NOT EXISTS (SELECT 1 FROM final_times f WHERE f.verdict = best_times.verdict);
END;

CREATE TRIGGER best_times_published AFTER INSERT ON final_times BEGIN
    INSERT INTO best_times (problem, device, kind, candidate, verdict, class, p50_us)
    SELECT problem, device, kind, candidate, verdict, class, p50_us FROM valid_times
    WHERE verdict = new.verdict
    ON CONFLICT (candidate, device, kind)
    DO UPDATE SET verdict = excluded.verdict, class = excluded.class, p50_us = excluded.p50_us
    WHERE excluded.class < class OR excluded.class = class
      AND (excluded.verdict >= best_times.verdict
           OR NOT EXISTS (SELECT 1 FROM final_times f WHERE f.verdict = best_times.verdict));
END;

CREATE TRIGGER best_times_withdrawn AFTER INSERT ON verdicts
WHEN new.verdict IN ('out_of_bounds', 'misaligned', 'barrier_divergence', 'deadlock', 'race',
                     'uninitialized', 'nondeterministic', 'implausible', 'incorrect') BEGIN
    DELETE FROM best_times WHERE candidate = new.candidate AND device =
        (SELECT r.device FROM tasks t JOIN runs r ON r.id = t.run WHERE t.id = new.task);
    INSERT INTO best_times (problem, device, kind, candidate, verdict, class, p50_us)
    SELECT problem, device, kind, candidate, verdict, class, p50_us FROM (
        SELECT *, row_number() OVER (PARTITION BY kind ORDER BY class, stage,
                                     iif(stage = 'final', -verdict, 0), p50_us, verdict) AS place
        FROM valid_times
        WHERE problem = (SELECT problem FROM candidates WHERE id = new.candidate)
          AND device = (SELECT r.device FROM tasks t JOIN runs r ON r.id = t.run WHERE t.id = new.task)
          AND candidate = new.candidate)
    WHERE place = 1;
END;

-- A proof may come after the verdict: it changes the state, or withdraws the time.
CREATE TRIGGER best_times_proven AFTER UPDATE OF verdict, compared ON verdicts BEGIN
    DELETE FROM best_times WHERE candidate = new.candidate AND device =
        (SELECT r.device FROM tasks t JOIN runs r ON r.id = t.run WHERE t.id = new.task);
    INSERT INTO best_times (problem, device, kind, candidate, verdict, class, p50_us)
    SELECT problem, device, kind, candidate, verdict, class, p50_us FROM (
        SELECT *, row_number() OVER (PARTITION BY kind ORDER BY class, stage,
                                     iif(stage = 'final', -verdict, 0), p50_us, verdict) AS place
        FROM valid_times
        WHERE problem = (SELECT problem FROM candidates WHERE id = new.candidate)
          AND device = (SELECT r.device FROM tasks t JOIN runs r ON r.id = t.run WHERE t.id = new.task)
          AND candidate = new.candidate)
    WHERE place = 1;
END;
