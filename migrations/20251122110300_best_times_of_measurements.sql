-- Best times as the leaderboard has them: a time of a final comparison counts before all others of
-- its candidate, for the fastest of several noisy ones is too good.
DROP TRIGGER best_times_kept;

CREATE TRIGGER best_times_kept AFTER INSERT ON measurements BEGIN
    INSERT INTO best_times (problem, device, kind, candidate, verdict, p50_us)
    SELECT t.problem, r.device, new.kind, v.candidate, v.id, new.p50_us
    FROM verdicts v JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run
    WHERE v.id = new.verdict AND v.verdict = 'ok'
    ON CONFLICT (candidate, device, kind)
    DO UPDATE SET verdict = excluded.verdict, p50_us = excluded.p50_us
    WHERE excluded.p50_us < p50_us
      AND NOT EXISTS (SELECT 1 FROM final_times f WHERE f.verdict = best_times.verdict);
END;

CREATE TRIGGER best_times_published AFTER INSERT ON final_times BEGIN
    INSERT INTO best_times (problem, device, kind, candidate, verdict, p50_us)
    SELECT t.problem, r.device, m.kind, v.candidate, v.id, new.p50_us
    FROM measurements m JOIN verdicts v ON v.id = m.verdict JOIN tasks t ON t.id = v.task
    JOIN runs r ON r.id = t.run
    WHERE m.verdict = new.verdict AND v.verdict = 'ok'
    ON CONFLICT (candidate, device, kind)
    DO UPDATE SET verdict = excluded.verdict, p50_us = excluded.p50_us
    WHERE excluded.verdict >= best_times.verdict
       OR NOT EXISTS (SELECT 1 FROM final_times f WHERE f.verdict = best_times.verdict);
END;
