"""The package's modules import each other in one direction only."""

from __future__ import annotations

import ast
import graphlib
import pathlib
import unittest

import weft


class TestImports(unittest.TestCase):
    def test_no_circle(self) -> None:
        graph: "dict[str, set[str]]" = {}
        for path in pathlib.Path(weft.__file__).parent.glob("*.py"):
            needs = graph.setdefault(path.stem, set())
            for node in ast.walk(ast.parse(path.read_text())):  # also what is imported in functions, or for types only
                if isinstance(node, ast.ImportFrom) and node.level == 1:
                    needs.update([node.module] if node.module else [a.name for a in node.names])
                elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "weft":
                    needs.add(node.module.partition(".")[2] or "__init__")
                elif isinstance(node, ast.Import):
                    needs.update(a.name.partition(".")[2] or "__init__" for a in node.names if a.name.split(".")[0] == "weft")
        self.assertIn("connection", graph["app"])
        graphlib.TopologicalSorter(graph).prepare()  # raises CycleError


if __name__ == "__main__":
    unittest.main()
