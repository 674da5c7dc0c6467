-- best_times refers to verdicts: without this index each verdict of a deleted run costs a scan.
CREATE INDEX best_times_by_verdict ON best_times (verdict);
