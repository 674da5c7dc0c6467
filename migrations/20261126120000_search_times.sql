-- A time of a final comparison and one of the search come from two protocols: other data, other
-- clocks, other neighbours. `search_us` tells which a row has, and makes both comparable: null where
-- `p50_us` is of the search; the candidate's fastest valid time of the search, of the same class, where
-- `p50_us` is of a final comparison.
ALTER TABLE best_times ADD COLUMN search_us REAL;
-- A board may have a million candidates, of which a few for each run were in a final comparison.
CREATE INDEX best_times_final ON best_times (problem, device, kind, class, p50_us)
WHERE search_us IS NOT NULL;

DROP TRIGGER best_times_kept;
DROP TRIGGER best_times_published;
DROP TRIGGER best_times_withdrawn;
DROP TRIGGER best_times_proven;
DROP VIEW valid_times;
CREATE VIEW valid_times AS
SELECT t.problem, r.device, m.kind, v.candidate, v.id AS verdict,
       iif(f.verdict IS NULL, 'race', 'final') AS stage, coalesce(f.p50_us, m.p50_us) AS p50_us,
       m.p50_us AS search_us, v.provenance,
       coalesce(v.compared IN ('smaller_problems', 'unknown'), 0) AS class
FROM tasks t JOIN runs r ON r.id = t.run JOIN verdicts v ON v.task = t.id
JOIN measurements m ON m.verdict = v.id LEFT JOIN final_times f ON f.verdict = v.id
WHERE v.verdict = 'ok' AND NOT EXISTS (SELECT 1 FROM withdrawn w WHERE w.verdict = v.id);

-- A later time of the search never replaces one of a final comparison, but it may be the fastest of
-- the search.
CREATE TRIGGER best_times_kept AFTER INSERT ON measurements BEGIN
    INSERT INTO best_times (problem, device, kind, candidate, verdict, class, p50_us)
    SELECT problem, device, kind, candidate, verdict, class, p50_us FROM valid_times
    WHERE verdict = new.verdict
    ON CONFLICT (candidate, device, kind)
    DO UPDATE SET
        verdict = iif(excluded.class = class AND search_us IS NOT NULL, verdict, excluded.verdict),
        p50_us = iif(excluded.class = class AND search_us IS NOT NULL, p50_us, excluded.p50_us),
        search_us = iif(excluded.class = class AND search_us IS NOT NULL, excluded.p50_us, NULL),
        class = excluded.class
    WHERE excluded.class < class
       OR excluded.class = class AND excluded.p50_us < coalesce(search_us, p50_us);
END;

CREATE TRIGGER best_times_published AFTER INSERT ON final_times BEGIN
    INSERT INTO best_times (problem, device, kind, candidate, verdict, class, p50_us, search_us)
    SELECT problem, device, kind, candidate, verdict, class, p50_us, search_us FROM valid_times
    WHERE verdict = new.verdict
    ON CONFLICT (candidate, device, kind)
    DO UPDATE SET
        verdict = excluded.verdict, p50_us = excluded.p50_us,
        search_us = iif(excluded.class = class,
                        min(coalesce(search_us, p50_us), excluded.search_us), excluded.search_us),
        class = excluded.class
    WHERE excluded.class < class
       OR excluded.class = class AND (excluded.verdict >= verdict OR search_us IS NULL);
END;

-- Of a candidate's valid times that count which are compared at the timed size; of these the latest
-- of a final comparison, or else the fastest.
CREATE TRIGGER best_times_withdrawn AFTER INSERT ON verdicts
WHEN (SELECT class FROM verdict_facts WHERE name = new.verdict) = 'wrong' BEGIN
    DELETE FROM best_times WHERE candidate = new.candidate AND device =
        (SELECT r.device FROM tasks t JOIN runs r ON r.id = t.run WHERE t.id = new.task);
    INSERT INTO best_times (problem, device, kind, candidate, verdict, class, p50_us, search_us)
    SELECT problem, device, kind, candidate, verdict, class, p50_us,
           iif(stage = 'final', fastest_us, NULL) FROM (
        SELECT *, min(search_us) OVER (PARTITION BY kind, class) AS fastest_us,
               row_number() OVER (PARTITION BY kind ORDER BY class, stage,
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
    INSERT INTO best_times (problem, device, kind, candidate, verdict, class, p50_us, search_us)
    SELECT problem, device, kind, candidate, verdict, class, p50_us,
           iif(stage = 'final', fastest_us, NULL) FROM (
        SELECT *, min(search_us) OVER (PARTITION BY kind, class) AS fastest_us,
               row_number() OVER (PARTITION BY kind ORDER BY class, stage,
                                  iif(stage = 'final', -verdict, 0), p50_us, verdict) AS place
        FROM valid_times
        WHERE problem = (SELECT problem FROM candidates WHERE id = new.candidate)
          AND device = (SELECT r.device FROM tasks t JOIN runs r ON r.id = t.run WHERE t.id = new.task)
          AND candidate = new.candidate)
    WHERE place = 1;
END;

UPDATE best_times SET search_us = (
    SELECT min(n.search_us) FROM valid_times n
    WHERE n.candidate = best_times.candidate AND n.problem = best_times.problem
      AND n.device = best_times.device AND n.kind = best_times.kind AND n.class = best_times.class)
WHERE verdict IN (SELECT verdict FROM final_times);
