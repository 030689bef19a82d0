# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""curve.py LOG OUT.svg: the losses of a training log (lines of JSON, or a table
in a .csv), and those measured."""
import csv
import json
import math
import sys

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 560, 300, 52, 16, 12, 36


def read(log):
    with open(log) as file:
        if not log.endswith(".csv"):
            return [json.loads(line) for line in file]
        return [{"step": int(row["step"]),
                 **{key: float(row[key]) for key in ("loss", "eval_loss")
                    if row.get(key)}}
                for row in csv.DictReader(file)]


def main(log, out):
    lines = read(log)
    trained = [(line["step"], line["loss"]) for line in lines if "loss" in line]
    tested = [(line["step"], line["eval_loss"]) for line in lines
              if "eval_loss" in line]
    values = [math.log10(loss) for _, loss in trained + tested]
    low, high = math.floor(min(values)), math.ceil(max(values))
    last = max(step for step, _ in trained)

    def x(step):
        return LEFT + (WIDTH - LEFT - RIGHT) * step / last

    def y(loss):
        part = (high - math.log10(loss)) / (high - low)
        return TOP + (HEIGHT - TOP - BOTTOM) * part

    def path(points):
        return " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in points)

    # The mean of neighbours: single batches say little.
    width = max(1, len(trained) // 150)
    smooth = []
    for i in range(0, len(trained) - width + 1, width):
        part = trained[i:i + width]
        smooth.append((part[-1][0], sum(loss for _, loss in part) / width))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
             f'height="{HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for power in range(low, high + 1):
        at = y(10 ** power)
        parts += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" '
                  f'y2="{at:.1f}" stroke="#ddd"/>',
                  f'<text x="{LEFT - 6}" y="{at + 4:.1f}" '
                  f'text-anchor="end">{10.0 ** power:g}</text>']
    for step in range(0, last + 1, max(1, last // 5)):
        parts.append(f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 18}" '
                     f'text-anchor="middle">{step}</text>')
    parts += [f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 4}" '
              'text-anchor="middle">step</text>',
              f'<polyline points="{path(smooth)}" fill="none" '
              'stroke="#1f6fb4" stroke-width="1.5"/>',
              f'<polyline points="{path(tested)}" fill="none" '
              'stroke="#d1571c" stroke-width="2"/>',
              f'<text x="{WIDTH - RIGHT}" y="{TOP + 12}" text-anchor="end" '
              'fill="#1f6fb4">loss, training</text>',
              f'<text x="{WIDTH - RIGHT}" y="{TOP + 28}" text-anchor="end" '
              'fill="#d1571c">loss, test set</text>', "</svg>", ""]
    with open(out, "w") as file:
        file.write("\n".join(parts))


if __name__ == "__main__":
    main(*sys.argv[1:])
