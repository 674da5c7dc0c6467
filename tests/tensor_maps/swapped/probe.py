"""Launches the package's kernel on tensors of several sizes."""
from stub import contents, filled, kernel

print(kernel.schema())
for rows, columns in [(3500, 32), (890, 32), (100, 32), (999, 7)]:
    wrong = sum(value != 2 * at for at, value in enumerate(contents(kernel.launch(filled(rows, columns)))))
    variant, names = kernel.choose("vgpu:h100", 90, {"R": rows, "C": columns})
    [made] = kernel.plan(names)
    print(f"{wrong} wrong, {made['entry']}, cluster {made['cluster'][0]}")
try:
    kernel.launch(filled(900, 32))
except ValueError as error:
    print(error)
