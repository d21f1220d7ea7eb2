#!/usr/bin/env python3
"""Writes the tables of a page from what `aha eval` left, so that no figure is typed: results_page.py TABLES PAGE.md

TABLES has one folder NAME for each evaluation, with its results.csv and table.md (scripts/results.sh makes them). Between
`<!-- KIND NAME ... -->` and `<!-- end -->` of the page stands the table of that kind:
  nested NAME NAME ...  all methods; evaluations of ever fewer images and ever more methods, the images nested
  wide NAME             all metrics of all methods
  references NAME       Ins-Del by reference
  classes NAME          the predicted and the true class
"""
import csv
import re
import sys

LOWER = set()  # metrics of which less is better, as the tables' own arrows say


def evaluation(folder, name):
    """{class: {method: {metric: row}}} in the order of the file."""
    out = {}
    with open(f"{folder}/{name}/table.md") as file:
        LOWER.update(re.findall(r"([\w-]+) ↓ \|", file.read()))
    with open(f"{folder}/{name}/results.csv", newline="") as file:
        for row in csv.DictReader(file):
            out.setdefault(row["class"], {}).setdefault(row["method"], {})[row["metric"]] = row
    return out


def images(methods):
    return next(iter(next(iter(methods.values())).values()))["images"]


def interval(row):
    return "{:.3f} [{:.3f}, {:.3f}]".format(*(float(row[k]) for k in ("mean", "low", "high")))


def passes(row):
    f, b = (float(row[k]) for k in ("target_forwards", "target_backwards"))
    number = lambda x: f"{x:.0f}" if x >= 10 else f"{x:.2f}".rstrip("0").rstrip(".")
    return " + ".join(f"{number(x)} {kind}" for x, kind in ((f, "F"), (b, "B")) if x > 0) or "0"


def titled(metric):
    return f"{metric} {'↓' if metric in LOWER else '↑'}"


def table(head, lines):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head)] + lines)


def better(metric, value):
    return -value if metric in LOWER else value


def marked(values, texts, metric, counts):
    """The best of those that count in bold."""
    best = max((better(metric, v) for v, c in zip(values, counts) if c), default=None)
    return [f"**{t}**" if c and better(metric, v) == best else t for v, t, c in zip(values, texts, counts)]


def is_ceiling(method):
    return method.split(":")[0] in ("greedy", "optimized")


def nested(folder, *names):
    found = [evaluation(folder, name)["predicted"] for name in names]
    methods = list(found[-1])
    value = lambda table, method: float(table[method]["ins-del"]["mean"])
    methods.sort(key=lambda method: -value(found[-1], method))
    head = ["method", "images", "deletion ↓", "insertion ↑", "ins-del ↑"]
    head += [f"ins-del, {images(one)} images" for one in found[1:]] + ["target passes"]
    columns = []
    for one in found[1:]:
        own = [m for m in methods if m in one]
        texts = marked([value(one, m) for m in own], [f"{value(one, m):.3f}" for m in own], "ins-del",
                       [not is_ceiling(m) for m in own])
        columns.append(dict(zip(own, texts)))
    lines = []
    for method in methods:
        first = next(one for one in found if method in one)
        own = first[method]
        lines.append([method, images(first)] + [interval(own[m]) for m in ("deletion", "insertion", "ins-del")] +
                     [column.get(method, "") for column in columns] + [passes(own["ins-del"])])
    return table(head, lines)


def wide(folder, name, explained="predicted"):
    methods = evaluation(folder, name)[explained]
    metrics = [m for m, row in next(iter(methods.values())).items() if int(row["images"]) > 0]
    mean_rank = {m: float(next(iter(own.values()))["mean_rank"] or 0) for m, own in methods.items()}  # 0 = none
    order = sorted(methods, key=lambda method: mean_rank[method] or 1e9)
    head = ["method"] + [titled(m) for m in metrics] + ["mean rank"]
    columns = []
    for metric in metrics:
        values = [float(methods[m][metric]["mean"]) for m in order]
        columns.append(marked(values, [f"{v:.3f}" for v in values], metric, [not is_ceiling(m) for m in order]))
    rank = [f"{mean_rank[m]:.1f}" if mean_rank[m] else "" for m in order]
    return f"{images(methods)} images.\n\n" + table(
        head, [[m] + [column[i] for column in columns] + [rank[i]] for i, m in enumerate(order)])


def references(folder, name):
    methods = evaluation(folder, name)["predicted"]
    names = [key[len("reference_"):] for key in next(iter(methods.values()))["ins-del"] if key.startswith("reference_")]
    order = sorted(methods, key=lambda method: -float(methods[method]["ins-del"]["mean"]))
    head = ["method"] + [f"{m}, {r}" for m in ("deletion ↓", "insertion ↑", "ins-del ↑") for r in names]
    lines = [[m] + [f"{float(methods[m][k]['reference_' + r]):.3f}" for k in ("deletion", "insertion", "ins-del")
                    for r in names] for m in order]
    return f"{images(methods)} images.\n\n" + table(head, lines)


def classes(folder, name):
    both = evaluation(folder, name)
    shown = ("deletion", "insertion", "positive", "negative", "ins-del", "neg-pos")
    head = ["method"] + [f"{titled(m)}, {c}" for m in shown for c in both]
    order = sorted(both["predicted"], key=lambda method: -float(both["predicted"][method]["ins-del"]["mean"]))
    lines = [[m] + [f"{float(both[c][m][k]['mean']):.3f}" for k in shown for c in both] for m in order]
    return f"{images(both['predicted'])} images.\n\n" + table(head, lines)


KINDS = {"nested": nested, "wide": wide, "references": references, "classes": classes}


def main(folder, page):
    text = open(page).read()
    block = re.compile(r"(<!-- (\w+) ([^>]*?) -->\n).*?(<!-- end -->)", re.S)
    made = block.sub(lambda m: m[1] + "\n" + KINDS[m[2]](folder, *m[3].split()) + "\n\n" + m[4], text)
    open(page, "w").write(made)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
