"""The code keeps its shape: imports point one way, rules stay pure, files and functions stay short."""

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# A room may import those above it in this list, and itself; rooms on one line know nothing of each other.
LAYERS = (
    "errors",
    "rules",
    "conf",
    "models",
    "embedding",
    "distillers",
    "search",
    "services",
    "tasks",
    "api mcp",
    "admin management checks migrations",
    "apps",
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms.split()}
# `up` starts the site's processes; everything else of the product must run without the site.
KNOWS_THE_SITE = {"memory.management.commands.up"}
# What each room must do without.
FORBIDDEN = {
    "models": {"rest_framework", "celery", "kombu"},
    "embedding": {"rest_framework", "celery", "kombu"},
    "distillers": {"rest_framework", "celery", "kombu"},
    "search": {"rest_framework", "celery", "kombu"},
    "services": {"rest_framework", "celery", "kombu"},
    "tasks": {"rest_framework"},
}
# All that a rule may import: nothing here reads a clock, tosses a coin, or touches a file, a database or a network.
PURE = {
    "base64", "collections", "dataclasses", "decimal", "enum", "errno", "functools", "hashlib", "hmac", "html",
    "ipaddress", "itertools", "math", "re", "types", "typing", "unicodedata", "urllib.parse", "uuid", "numpy",
    "detect_secrets", "memory.rules", "memory.errors",
}  # fmt: skip
READS_ITS_TABLE = {"memory.rules.text": {"importlib.resources"}}  # the one packaged data table
MAX_FILE, MAX_FUNCTION = 300, 45  # lines
LONG_FILES = {
    "memory/rules/ledger.py": "one account, from row to decision: cut in two, each half would need the other's types",
}
LONG_FUNCTIONS: dict[str, str] = {}

CALL_AS_CLIENTS = {"sonder_client", "examples"}

# What the page of reports reads; nothing else of an evaluation is known outside.
SHOWN_OF_EVALUATIONS = {"evaluation.catalogue", "evaluation.report"}

ROOMS = ("memory", "review", "sonder_site", "evaluation", "sonder_client", "examples", "scripts")
SOURCES = {path: path.relative_to(ROOT) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))}
TREES = {
    ".".join(name.with_suffix("").parts).removesuffix(".__init__"): ast.parse(path.read_text(encoding="utf-8"))
    for path, name in SOURCES.items()
}
WRITTEN = {module: tree for module, tree in TREES.items() if ".migrations" not in module}
RULES = sorted(module for module in TREES if module.startswith("memory.rules."))


def imports(module: str) -> set[str]:
    """Every module that a module imports, wherever in it: a circle that is hidden in a function is one."""
    found: set[str] = set()
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in TREES else node.module for name in whole}
    return found


def room(module: str) -> str:
    return module.split(".")[1] if module.count(".") else ""


def is_within(module: str, packages: set[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


PAIRS = [(module, name) for module in sorted(TREES) for name in sorted(imports(module))]


class TestImports:
    def test_every_room_has_its_place(self) -> None:
        assert {room(module) for module in TREES if module.startswith("memory.")} <= set(LEVEL)

    def test_imports_point_one_way(self) -> None:
        inner = [(a, b) for a, b in PAIRS if room(a) in LEVEL and b.startswith("memory.") and room(a) != room(b)]
        assert [(a, b) for a, b in inner if LEVEL[room(a)] <= LEVEL[room(b)]] == []

    def test_no_import_is_relative(self) -> None:
        """The tests here read absolute names."""
        nodes = [(module, node) for module, tree in TREES.items() for node in ast.walk(tree)]
        assert [module for module, node in nodes if isinstance(node, ast.ImportFrom) and node.level] == []

    def test_no_modules_import_each_other_in_a_circle(self) -> None:
        graph = {module: imports(module) & TREES.keys() for module in TREES}
        order = tuple(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle
        assert set(order) == TREES.keys()

    def test_only_the_command_that_starts_the_site_knows_it(self) -> None:
        knowing = {a for a, b in PAIRS if a.startswith("memory") and is_within(b, {"sonder_site"})}
        assert knowing == KNOWS_THE_SITE

    def test_nobody_imports_the_tests_and_of_evaluations_only_their_reports_are_known(self) -> None:
        assert [(a, b) for a, b in PAIRS if is_within(b, {"tests"})] == []
        outside = [(a, b) for a, b in PAIRS if is_within(b, {"evaluation"}) and not a.startswith("evaluation")]
        assert {b for _, b in outside} <= SHOWN_OF_EVALUATIONS
        assert all(a.startswith("review") for a, _ in outside)

    def test_the_client_knows_nothing_of_the_server(self) -> None:
        outside = {b for a, b in PAIRS if is_within(a, {"sonder_client"}) and not is_within(b, {"sonder_client"})}
        assert {name.partition(".")[0] for name in outside} - sys.stdlib_module_names == {"httpx", "anyio"}
        assert [a for a, b in PAIRS if is_within(b, {"sonder_client"}) and not is_within(a, CALL_AS_CLIENTS)] == []

    def test_no_room_knows_what_it_must_do_without(self) -> None:
        assert [(a, b) for a, b in PAIRS if is_within(b, FORBIDDEN.get(room(a), set()))] == []


class TestRules:
    @pytest.mark.parametrize("module", RULES)
    def test_a_rule_imports_nothing_that_could_make_it_impure(self, module: str) -> None:
        allowed = PURE | READS_ITS_TABLE.get(module, set())
        assert [name for name in imports(module) if not is_within(name, allowed)] == []

    @pytest.mark.parametrize("module", RULES)
    def test_a_rule_opens_no_file_and_asks_nobody(self, module: str) -> None:
        touched = set(calls(TREES[module])) & {"open", "input", "print", "exec", "eval", "__import__"}
        assert touched == set()

    def test_only_the_text_rules_read_a_packaged_table(self) -> None:
        reading = {module for module in RULES if {"read_text", "read_bytes"} & set(calls(TREES[module]))}
        assert reading == set(READS_ITS_TABLE)


def calls(tree: ast.AST) -> Iterator[str]:
    """Names of the functions and methods that are called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


class TestForm:
    def test_files_are_short_but_for_the_listed(self) -> None:
        written = {path: name for path, name in SOURCES.items() if "migrations" not in name.parts}
        long = {str(name) for path, name in written.items() if path.read_text().count("\n") > MAX_FILE}
        assert long == set(LONG_FILES)

    def test_functions_are_short_but_for_the_listed(self) -> None:
        found = [(f"{module}.{f.name}", f) for module, tree in WRITTEN.items() for f in functions(tree)]
        long = {name for name, f in found if (f.end_lineno or f.lineno) - f.lineno >= MAX_FUNCTION}
        assert long == set(LONG_FUNCTIONS)

    def test_every_module_says_what_it_is(self) -> None:
        silent = [module for module, tree in WRITTEN.items() if tree.body and not ast.get_docstring(tree)]
        assert silent == []

    def test_the_product_prints_nothing(self) -> None:
        """Commands write to their own output, everything else to the log. A measurement shows what it measured."""
        product = {module: tree for module, tree in WRITTEN.items() if not is_within(module, {"evaluation"})}
        assert [module for module, tree in product.items() if "print" in calls(tree)] == []


def named(node: ast.AST) -> Iterator[ast.AST]:
    """What a parameter's name is made of: pytest numbers dictionaries and functions instead of spelling them out."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Dict | ast.Lambda):
            yield from named(child)


def test_no_parameter_of_a_test_is_random() -> None:
    """Workers that run tests side by side collect them each for itself, and must find the same."""
    random = {"uuid4", "uuid7", "new_id", "token_hex", "token_urlsafe"}
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "parametrize":
                made = [part.func for part in named(node) if isinstance(part, ast.Call)]
                used = {getattr(each, "id", getattr(each, "attr", "")) for each in made}
                found += [f"{path.name}:{node.lineno}" for name in used if name in random]
    assert found == []
