"""Figures of a trial that the database has and the events of a run have not."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any, List, Mapping
from urllib.parse import quote


@dataclass(frozen=True)
class Figures:
    """Figures of a stored trial; zeros where it has none."""

    #: Registers of a thread.
    registers: int = 0
    #: Time of its compilation, milliseconds; 0 on a virtual GPU, and where the code was compiled before.
    compile_ms: float = 0.0
    #: Times of its launches, milliseconds.
    times_ms: List[float] = field(default_factory=list)


def read_figures(database: str, run_id: str, event: Mapping[str, Any]) -> Figures:
    """Reads the figures of the trial of an event."""
    with contextlib.closing(sqlite3.connect(f"file:{quote(database)}?mode=ro", uri=True)) as connection:
        row = connection.execute(
            "SELECT c.registers, c.compile_us, m.samples_us FROM verdicts v LEFT JOIN compilations c ON c.candidate = v.candidate "
            "LEFT JOIN measurements m ON m.verdict = v.id "
            "JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run JOIN problems p ON p.id = t.problem "
            "WHERE r.name = ? AND p.name = ? AND v.sequence = ?",
            (run_id, event["problem"], event["sequence"]),
        ).fetchone()
    if row is None:
        return Figures()
    registers, compile_us, samples = row
    return Figures(registers or 0, (compile_us or 0) / 1000, [each / 1000 for each in json.loads(samples or "[]")])
