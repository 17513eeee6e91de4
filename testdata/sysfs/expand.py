#!/usr/bin/python3
"""Makes the folder that a .tree file describes.

    expand.py FILE.tree FOLDER

A line is "PATH TEXT": the file PATH, absolute, holds TEXT and a line end; \\n in TEXT is a line end too.
"PATH" alone is an empty file. "@include OTHER.tree" takes the lines of another file of this folder first, later
lines replace its files, and "-PATH" takes a file or a whole folder away. '#' begins a comment line.

The trees are made by hand after the kernel's documentation (Documentation/ABI/stable/sysfs-class-infiniband,
testing/sysfs-class-net, proc.rst) and no copy of any machine.
"""

import pathlib
import sys


def files(tree):
    """The files of a tree: path -> text."""
    result = {}
    for line in pathlib.Path(tree).read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("@include "):
            result.update(files(pathlib.Path(tree).parent / line.split(" ", 1)[1]))
        elif line.startswith("-"):
            for path in [p for p in result if p == line[1:] or p.startswith(line[1:] + "/")]:
                del result[path]
        else:
            path, _, text = line.partition(" ")
            result[path] = text.replace("\\n", "\n")
    return result


def expand(tree, folder):
    for path, text in files(tree).items():
        target = pathlib.Path(f"{folder}{path}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + "\n" if text else "", encoding="utf-8")


if __name__ == "__main__":
    expand(sys.argv[1], sys.argv[2])
