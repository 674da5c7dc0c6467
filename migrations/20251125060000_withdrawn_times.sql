-- What a later judgement found to be wrong does not rank, whatever the order in which the rows came
-- in: merging another database brings all verdicts before the first time, and results of different
-- days in any order. "Later" is when it was judged, not where its row stands.

-- What is known of a candidate; without it every such question makes an index of all verdicts first.
CREATE INDEX verdicts_by_candidate ON verdicts (candidate);

-- Passed verdicts whose candidate was found to be wrong on the same device since.
CREATE VIEW withdrawn AS
SELECT v.id AS verdict FROM verdicts v JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run
WHERE v.verdict = 'ok' AND EXISTS (
    SELECT 1 FROM verdicts w JOIN tasks u ON u.id = w.task JOIN runs s ON s.id = u.run
    WHERE w.candidate = v.candidate AND s.device = r.device
      AND w.verdict IN ('out_of_bounds', 'misaligned', 'barrier_divergence', 'deadlock', 'race',
                        'uninitialized', 'nondeterministic', 'implausible', 'incorrect')
      AND (w.judged_at, w.id) > (v.judged_at, v.id));

-- Every time that may rank.
CREATE VIEW valid_times AS
SELECT t.problem, r.device, m.kind, v.candidate, v.id AS verdict, m.stage, m.p50_us, v.provenance
FROM tasks t JOIN runs r ON r.id = t.run JOIN verdicts v ON v.task = t.id
JOIN times m ON m.verdict = v.id
WHERE v.verdict = 'ok' AND NOT EXISTS (SELECT 1 FROM withdrawn w WHERE w.verdict = v.id);

DROP TRIGGER best_times_kept;
DROP TRIGGER best_times_published;
DROP TRIGGER best_times_withdrawn;

CREATE TRIGGER best_times_kept AFTER INSERT ON measurements BEGIN
    INSERT INTO best_times (problem, device, kind, candidate, verdict, p50_us)
    SELECT problem, device, kind, candidate, verdict, p50_us FROM valid_times
    WHERE verdict = new.verdict
    ON CONFLICT (candidate, device, kind)
    DO UPDATE SET verdict = excluded.verdict, p50_us = excluded.p50_us
    WHERE excluded.p50_us < p50_us
      AND NOT EXISTS (SELECT 1 FROM final_times f WHERE f.verdict = best_times.verdict);
END;

CREATE TRIGGER best_times_published AFTER INSERT ON final_times BEGIN
    INSERT INTO best_times (problem, device, kind, candidate, verdict, p50_us)
    SELECT problem, device, kind, candidate, verdict, p50_us FROM valid_times
    WHERE verdict = new.verdict
    ON CONFLICT (candidate, device, kind)
    DO UPDATE SET verdict = excluded.verdict, p50_us = excluded.p50_us
    WHERE excluded.verdict >= best_times.verdict
       OR NOT EXISTS (SELECT 1 FROM final_times f WHERE f.verdict = best_times.verdict);
END;

-- Of the times that are left the latest of a final comparison counts, or else the fastest.
CREATE TRIGGER best_times_withdrawn AFTER INSERT ON verdicts
WHEN new.verdict IN ('out_of_bounds', 'misaligned', 'barrier_divergence', 'deadlock', 'race',
                     'uninitialized', 'nondeterministic', 'implausible', 'incorrect') BEGIN
    DELETE FROM best_times WHERE candidate = new.candidate AND device =
        (SELECT r.device FROM tasks t JOIN runs r ON r.id = t.run WHERE t.id = new.task);
    INSERT INTO best_times (problem, device, kind, candidate, verdict, p50_us)
    SELECT problem, device, kind, candidate, verdict, p50_us FROM (
        SELECT *, row_number() OVER (PARTITION BY kind ORDER BY stage, iif(stage = 'final', -verdict, 0),
                                     p50_us, verdict) AS place
        FROM valid_times
        WHERE problem = (SELECT problem FROM candidates WHERE id = new.candidate)
          AND device = (SELECT r.device FROM tasks t JOIN runs r ON r.id = t.run WHERE t.id = new.task)
          AND candidate = new.candidate)
    WHERE place = 1;
END;

-- The rows that other triggers may have left wrong are those of candidates with such a verdict.
DELETE FROM best_times WHERE candidate IN (
    SELECT candidate FROM verdicts
    WHERE verdict IN ('out_of_bounds', 'misaligned', 'barrier_divergence', 'deadlock', 'race',
                      'uninitialized', 'nondeterministic', 'implausible', 'incorrect'));
INSERT INTO best_times (problem, device, kind, candidate, verdict, p50_us)
SELECT problem, device, kind, candidate, verdict, p50_us FROM (
    SELECT *, row_number() OVER (PARTITION BY candidate, device, kind
                                 ORDER BY stage, iif(stage = 'final', -verdict, 0), p50_us, verdict)
        AS place
    FROM valid_times WHERE candidate IN (
        SELECT candidate FROM verdicts
        WHERE verdict IN ('out_of_bounds', 'misaligned', 'barrier_divergence', 'deadlock', 'race',
                          'uninitialized', 'nondeterministic', 'implausible', 'incorrect')))
WHERE place = 1;
