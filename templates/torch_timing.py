"""Times work on PyTorch's current CUDA device, as the tuner times its candidates.

Each sample is a graph of launches between two events, queued behind a kernel that keeps the GPU
waiting until the host has queued all of it, so that no time of the host lies between the events.
Samples are interleaved with those of a fixed reference (A B B A), after clocks and heat have
settled; the result is the median ratio to the reference times the reference's median. Buffers stay
the same from launch to launch: warm caches, the mode in which the tuner ranks.
"""

import contextlib
import json
import math
import sys

import torch

SAMPLE_US = 1500.0  # Long enough for the resolution of CUDA events.
LAUNCHES_MAX = 500
WARM_UP_US = 1.5e6
BLOCKS = (8, 30)  # Two samples each, at least and at most.
HALF_WIDTH = 0.005  # Of the 95 % interval of the ratio.
DRIFT = 0.02  # Between the two ends of a block; else it is done again.
REDO = 4
SPIN_CYCLES = 400_000  # 0.2 ms at 2 GHz.
PATIENCE_MAX = 64


def report(name: str, times: dict) -> None:
    """Prints the answer of a baseline: one JSON object."""
    version = torch.__version__
    print(json.dumps({"name": f"PyTorch {version} {name}", "version": version, **times}))


def normal(*shape: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Numbers of mean 0 and deviation 1."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(*shape, device="cuda", dtype=dtype, generator=generator)


def sample(launch) -> dict:
    """Microseconds a launch: {"p50_us", "p90_us", "protocol", …}."""
    return compare({"": (launch, contextlib.nullcontext())})[""]


def best(variants: dict) -> tuple:
    """Name and times of the fastest of several ways to do the same, {name: (launch, context)}, timed
    interleaved, and the times of all. Ways that PyTorch refuses are left out."""
    times = compare(variants)
    if not times:
        sys.exit(f"none of {', '.join(variants)} works here")
    name = min(times, key=lambda name: times[name]["p50_us"])
    every = {name: round(found["p50_us"], 3) for name, found in times.items()}
    return name, {**times[name], "variants_us": every}


def compare(variants: dict) -> dict:
    stream = torch.cuda.Stream()
    watch = Watch(stream)
    with torch.cuda.stream(stream):
        # A fixed piece of work, whatever is timed.
        a, b = (normal(1024, 1024, dtype=torch.float16, seed=seed) for seed in (11, 12))
        c = torch.empty(1024, 1024, device="cuda", dtype=torch.float16)
        reference = watch.prepared(lambda: torch.matmul(a, b, out=c))
        subjects = {}
        for name, (launch, context) in variants.items():
            try:
                with context:
                    subjects[name] = watch.prepared(launch)
            except RuntimeError as error:
                print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
        watch.warm_up(reference)
        races = {name: Race(subject) for name, subject in subjects.items()}
        unit = []
        while any(not race.done() for race in races.values()):
            for race in races.values():
                if not race.done():
                    unit += race.block(watch, reference)
    unit = median(unit)
    return {name: race.times(unit) for name, race in races.items()}


class Watch:
    """Times graphs on one stream."""

    def __init__(self, stream):
        self.stream = stream
        self.patience = 1
        self.late = 0
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def prepared(self, launch) -> tuple:
        """A graph of as many launches as a sample takes, run before, and their number."""
        for _ in range(5):
            launch()
        self.stream.synchronize()
        # From a graph, without Python's time between the launches.
        once = self.elapsed_us(self.graph(launch, 10)) / 10
        count = max(1, min(LAUNCHES_MAX, math.ceil(SAMPLE_US / max(once, 1e-3))))
        return self.graph(launch, count), count

    def graph(self, launch, count: int):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            for _ in range(count):
                launch()
        for _ in range(3):
            graph.replay()
        self.stream.synchronize()
        return graph

    def elapsed_us(self, graph) -> float:
        start, end = self.events
        while True:
            torch.cuda._sleep(SPIN_CYCLES * self.patience)
            start.record(self.stream)
            graph.replay()
            end.record(self.stream)
            # Where the start has passed already, the GPU may have waited for the host since.
            late = start.query()
            end.synchronize()
            if not late or self.patience >= PATIENCE_MAX:
                self.late += late
                return start.elapsed_time(end) * 1e3
            self.patience *= 2

    def each_us(self, subject: tuple) -> float:
        graph, count = subject
        return self.elapsed_us(graph) / count

    def warm_up(self, reference: tuple) -> None:
        spent = 0.0
        while spent < WARM_UP_US:
            spent += self.elapsed_us(reference[0])


class Race:
    """Ratios of one subject to the reference."""

    def __init__(self, subject: tuple):
        self.subject = subject
        self.ratios = []
        self.redone = 0

    def block(self, watch: Watch, reference: tuple) -> list:
        """One block A B B A; the reference's times, none where the block does not count."""
        outer = [watch.each_us(reference)]
        inner = [watch.each_us(self.subject) for _ in range(2)]
        outer.append(watch.each_us(reference))
        if abs(outer[1] / outer[0] - 1) > DRIFT and self.redone < REDO:
            self.redone += 1
            return []
        self.redone = 0
        self.ratios.append(math.sqrt(inner[0] * inner[1] / (outer[0] * outer[1])))
        return outer

    def done(self) -> bool:
        count = len(self.ratios)
        if count < BLOCKS[0]:
            return False
        low, high = interval(self.ratios)
        return count >= BLOCKS[1] or high - low < 2 * HALF_WIDTH * median(self.ratios)

    def times(self, unit: float) -> dict:
        ordered = sorted(self.ratios)
        p90 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.9))]
        return {
            "p50_us": median(self.ratios) * unit,
            "p90_us": p90 * unit,
            "protocol": "graph behind a blocking kernel, interleaved with a reference, warm caches",
            "launches": self.subject[1],
            "blocks": len(ordered),
        }


def median(values: list) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def interval(values: list) -> tuple:
    """The 95 % interval of the median, by the normal approximation of the ranks."""
    ordered = sorted(values)
    half = 0.98 * math.sqrt(len(ordered))
    low = max(0, math.floor(len(ordered) / 2 - half))
    high = min(len(ordered) - 1, math.ceil(len(ordered) / 2 + half) - 1)
    return ordered[low], ordered[high]
