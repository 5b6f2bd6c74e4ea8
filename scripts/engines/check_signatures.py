"""Says whether what the recorders hook is in an engine's package, as they assume it.

    pip download vllm==0.33.0 --no-deps        # or sglang, transformers: nothing is installed
    unzip -q vllm-*.whl -d unpacked
    python scripts/engines/check_signatures.py unpacked

The sources are parsed and not run, so that no accelerator and no dependency is needed. Prints one
line for each assumption of `specgap.record` about each engine that the folder has, with the place
where it holds. Exits with 1 if any fails, and with 2 if the folder has none of the engines. Needs the
wheel of specgap.
"""

import ast
import importlib
import pathlib
import sys

# By their modules: `specgap.record.hf` is also the name of a function.
hf, sglang, vllm = (
    importlib.import_module(f"specgap.record.{name}") for name in ("hf", "sglang", "vllm")
)


class Package:
    """An unpacked package."""

    def __init__(self, root):
        self.root = root

    def source(self, module):
        """A module as a tree, and its file; None if it is not there."""
        path = self.root.joinpath(*module.split("."))
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return ast.parse(file.read_text()), file
        return None, path.with_suffix(".py")

    def function(self, module, name):
        """A function that a module defines or imports, and where it is defined."""
        tree, file = self.source(module)
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node, f"{file.relative_to(self.root)}:{node.lineno}"
        for node in tree.body if tree else ():
            if isinstance(node, ast.ImportFrom) and any(
                (one.asname or one.name) == name for one in node.names
            ):
                return self.function(node.module, name)
        # A table of what is imported when it is asked for, or an import by platform.
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                if any(one.name == name for one in node.names):
                    found = self.function(node.module, name)
                    if found[0] is not None:
                        return found
        return None, str(file.relative_to(self.root))

    def has_name(self, module, name):
        """Whether a module's own namespace has a name, by definition or by import."""
        tree, _ = self.source(module)
        return tree is not None and any(
            getattr(node, "name", None) == name
            or isinstance(node, ast.ImportFrom)
            and any((one.asname or one.name) == name for one in node.names)
            for node in tree.body
        )

    def uses(self, module, name):
        """Places in a module that name a global, so that another in its place is called."""
        tree, file = self.source(module)
        return [
            f"{file.relative_to(self.root)}:{node.lineno}"
            for node in (ast.walk(tree) if tree else ())
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]

    def called_with(self, module, keywords):
        """Where a module calls something by these keywords alone."""
        tree, file = self.source(module)
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.Call) and not node.args:
                if set(keywords) <= {one.arg for one in node.keywords}:
                    return f"{file.relative_to(self.root)}:{node.lineno}"
        return None

    def says(self, module, text):
        """Where a module has a piece of text."""
        _, file = self.source(module)
        lines = file.read_text().splitlines() if file.is_file() else []
        places = [number for number, line in enumerate(lines, 1) if text in line]
        return f"{file.relative_to(self.root)}:{places[0]}" if places else None


def arguments(function):
    """Names of a function's arguments."""
    every = function.args
    return {one.arg for one in (*every.posonlyargs, *every.args, *every.kwonlyargs)}


class Findings:
    """What was looked for, and what came of it."""

    def __init__(self):
        self.failed = 0

    def say(self, what, place):
        """One assumption: where it holds, or None."""
        self.failed += place is None
        print(f"  {'ok     ' if place else 'MISSING'} {what}" + (f"  ({place})" if place else ""))

    def function(self, package, module, name, wanted):
        """A function with arguments of these names, called by way of this module."""
        found, place = package.function(module, name)
        here = found is not None and package.has_name(module, name)
        self.say(f"{module}.{name}", place if here else None)
        if found is None:
            return
        names = arguments(found)
        for one in wanted:
            self.say(f"    argument {' or '.join(one)}", place if names & set(one) else None)
        used = package.uses(module, name)
        self.say("    named there where it is called", used[0] if used else None)


def check_transformers(package, findings):
    wanted = [(name,) for name in hf.ARGUMENTS]
    findings.function(package, hf.HOME, hf.FUNCTION, wanted)


def check_vllm(package, findings):
    place = package.says("vllm.plugins", '"vllm.general_plugins"')
    findings.say("entry points vllm.general_plugins", place)
    for home, wanted in vllm.ARGUMENTS.items():
        findings.function(package, home, "rejection_sample", wanted)
    wanted = vllm.BEFORE[vllm.CONSTRAINTS]
    findings.function(package, vllm.FIRST, vllm.CONSTRAINTS, wanted)
    home, owner, method = vllm.SAMPLER
    found, place = package.function(home, method)
    findings.say(f"{home}: {owner}.{method}", place if found else None)
    for one in vllm.BEFORE[method]:
        named = found is not None and arguments(found) & set(one)
        findings.say(f"    argument {' or '.join(one)}", place if named else None)
    runners = ("vllm.v1.worker.gpu_model_runner", "vllm.v1.worker.gpu.warmup")
    for runner, name in zip(runners, vllm.WARM_UP, strict=True):
        found, place = package.function(runner, name)
        findings.say(f"{runner}: {name}", place if found else None)


def check_sglang(package, findings):
    place = package.says("sglang.srt.plugins", '"sglang.srt.plugins"')
    findings.say("entry points sglang.srt.plugins", place)
    home = "sglang.srt.plugins.hook_registry"
    for text in ("class HookRegistry", "def register", 'AROUND = "around"'):
        findings.say(f"{home}: {text}", package.says(home, text))
    for name in sglang.SAMPLERS:
        findings.function(package, sglang.HOME, name, [(one,) for one in sglang.ARGUMENTS])
    place = package.called_with(sglang.HOME, sglang.ARGUMENTS)
    findings.say(f"{sglang.HOME}: calls by keywords alone", place)


ENGINES = {"transformers": check_transformers, "vllm": check_vllm, "sglang": check_sglang}


def version(root, name):
    """The version of a package, by the folder that says it."""
    folders = [one.name for one in root.glob(f"{name}-*.dist-info")]
    return folders[0].removeprefix(f"{name}-").removesuffix(".dist-info") if folders else "?"


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    root, findings, seen = pathlib.Path(sys.argv[1]), Findings(), 0
    for name, check in ENGINES.items():
        if (root / name).is_dir():
            seen += 1
            print(f"{name} {version(root, name)}")
            check(Package(root), findings)
    if not seen:
        print(f"{root}: has none of {', '.join(ENGINES)}", file=sys.stderr)
        return 2
    print(f"{findings.failed} missing" if findings.failed else "all there")
    return 1 if findings.failed else 0


if __name__ == "__main__":
    sys.exit(main())
