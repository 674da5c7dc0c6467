"""`import tuner`: runs, checks, predictions, results and errors."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

import pytest

import tuner


def test_a_run_returns_its_results_in_order_and_passes_events_on(space):
    events = []
    results = tuner.tune(space, device="vgpu:a100", evals=3, db="r.db", on_event=events.append)
    assert [row["verdict"] for row in results] == ["ok"] * 3
    assert results.best["timing"] == "predicted"
    assert results.best["time_us"] == min(row["time_us"] for row in results)
    assert {event["event"] for event in events} >= {"run_started", "trial", "run_finished"}
    assert (results.device, results.interrupted) == ("vgpu:a100", False)
    stored = tuner.load_results("r.db", kernel="vector_add")
    assert {row["config"]["block_size_x"] for row in stored} == {64, 128, 256}


def test_a_bad_file_raises_with_its_place(space):
    text = space.read_text().replace("values: [64, 128, 256]", "valuess: [64]")
    space.write_text(text)
    with pytest.raises(tuner.InputError) as caught:
        tuner.tune(space, device="vgpu:a100", evals=1)
    error = caught.value
    assert error.file.endswith("space.yaml")
    assert (error.line, error.column) == (7, 19)
    assert "valuess" in error.message


def test_an_unknown_device_raises(space):
    with pytest.raises(tuner.InputError, match="vgpu:nothing"):
        tuner.check(space, device="vgpu:nothing")


def test_a_missing_database_raises():
    with pytest.raises(tuner.InputError, match="no such database"):
        tuner.load_results("none.db")


def test_checks_and_predictions_are_lists_of_dicts(space):
    checked = tuner.check(space, configs=[{"block_size_x": 64}], device="vgpu:a100")
    assert [(row["verdict"], row["config"]) for row in checked] == [("ok", {"block_size_x": 64})]
    configs = [{"block_size_x": 256}, {"block_size_x": 64}]
    predicted = tuner.predict(space, configs=configs, device="vgpu:a100")
    assert [row["config"]["block_size_x"] for row in predicted] == [256, 64]


def test_a_check_of_a_wrong_kernel_returns_its_verdict(space):
    source = space.parent / "kernel.cu"
    source.write_text(source.read_text().replace("if (i < n) ", ""))
    (row,) = tuner.check(space, configs=[{"block_size_x": 64}], device="vgpu:a100")
    assert row["verdict"] == "out_of_bounds"


def test_results_convert_to_a_frame_and_to_html(space):
    results = tuner.Results(
        [
            {"config": {"x": 1, "<b>": 2}, "verdict": "ok", "time_us": 2.0, "timing": "predicted"},
            {"config": {"x": 2, "<b>": 3}, "verdict": "incorrect", "time_us": None},
            {"config": {"x": 3, "<b>": 4}, "verdict": "ok", "time_us": 1.0, "timing": "predicted"},
        ],
        device="vgpu:a100",
    )
    page = results._repr_html_()
    assert "<polyline" in page and "&lt;b&gt;" in page and "<b>" not in page
    assert results.verdicts == {"ok": 2, "incorrect": 1}
    pandas = pytest.importorskip("pandas")
    frame = results.to_frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame["x"]) == [1, 2, 3]


def test_a_second_run_in_a_process_is_refused_while_one_is_in_progress(space):
    caught = []

    def again(event):
        if event["event"] == "run_started":
            try:
                tuner.tune(space, device="vgpu:a100", evals=1)
            except tuner.BusyError as error:
                caught.append(error)

    tuner.tune(space, device="vgpu:a100", evals=1, on_event=again)
    assert len(caught) == 1 and "tuner submit" in str(caught[0])
    # And afterwards it is not.
    assert len(tuner.tune(space, device="vgpu:a100", evals=1)) == 1


def test_a_run_in_a_process_forked_during_a_run_is_refused(space):
    codes = []

    def fork(event):
        if event["event"] != "run_started":
            return
        child = os.fork()
        if child == 0:
            code = 1
            try:
                tuner.tune(space, device="vgpu:a100", evals=1)
            except tuner.BusyError as error:
                code = 7 if "spawn" in str(error) else 2
            finally:
                os._exit(code)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    tuner.tune(space, device="vgpu:a100", evals=1, on_event=fork)
    assert codes == [7]


def test_ctrl_c_ends_a_run_and_returns_what_there_is(space):
    # A shell that starts the tests in the background ignores the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    text = space.read_text().replace("values: [64, 128, 256]", "range: { from: 1, to: 1024 }")
    space.write_text(text)

    sent = []

    def once(event):
        if event["event"] == "trial" and not sent:
            sent.append(True)
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()

    results = tuner.tune(space, device="vgpu:a100", db="r.db", on_event=once)
    assert results.interrupted and 0 < len(results) < 1024
    assert len(tuner.load_results("r.db", kernel="vector_add")) > 0


def test_an_exception_of_a_callback_ends_the_run(space):
    def fail(event):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tuner.tune(space, device="vgpu:a100", on_event=fail)


def test_a_program_that_is_not_there_is_named(monkeypatch, space):
    monkeypatch.setenv("TUNER", "/nonexistent/tuner")
    with pytest.raises(tuner.TunerError, match="TUNER=/nonexistent/tuner"):
        tuner.check(space)


def test_the_module_runs_the_program(program):
    environment = {**os.environ, "TUNER": program, "PYTHONPATH": os.path.dirname(os.path.dirname(tuner.__file__))}
    done = subprocess.run([sys.executable, "-m", "tuner", "--version"], env=environment, capture_output=True, text=True)
    assert done.stdout.startswith("tuner "), done


def test_the_program_is_found_next_to_the_package(place):
    # As `pip install --target` lays it out.
    package = pathlib.Path(tuner.__file__).parent
    shutil.copytree(package, place / "packages" / "tuner", ignore=shutil.ignore_patterns("__pycache__", "kernel_tuner"))
    program = place / "packages" / "bin" / "tuner"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    # The environment has another one.
    other = place / "scripts" / "tuner"
    other.parent.mkdir()
    shutil.copy(program, other)
    script = (
        f"import sys, sysconfig; sys.path.insert(0, {str(place / 'packages')!r}); "
        f"sysconfig.get_path = lambda *_: {str(other.parent)!r}; import tuner; print(tuner.find_program())"
    )
    words = [sys.executable, "-I", "-c", script]
    done = subprocess.run(words, env={"PATH": "/nonexistent"}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(program)


def test_numbers_of_numpy_are_numbers(monkeypatch):
    import numpy as np

    assert tuner.format_config({"a": np.bool_(True), "b": np.int64(3)}) == "a=true,b=3"
    given = []

    class Stream:
        interrupted = False

        def __init__(self, arguments, cwd):
            given.extend(arguments)

        def follow(self, on_event):
            return None

    monkeypatch.setattr(tuner, "EventStream", Stream)
    for budget in (np.int64(2), np.float32(2), 2):
        given.clear()
        tuner.tune("k", budget=budget, progress=False)
        assert "--budget=2s" in given


@pytest.mark.parametrize("evals", ["3", 2.0, True])
def test_a_number_of_configurations_that_is_none_is_refused(evals):
    with pytest.raises(tuner.InputError, match="give a whole number"):
        tuner.tune("k", evals=evals)


def test_a_name_of_accepted_values_needs_values(space):
    space.write_text(space.read_text().replace("reference: {", "reference: { accepted_as: verify,"))
    with pytest.raises(tuner.InputError, match="`accepted_as` is for values"):
        tuner.check(space)
