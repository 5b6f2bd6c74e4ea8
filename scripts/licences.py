#!/usr/bin/env python3
"""Checks licences and sources of everything that specgap is made of.

    cargo metadata --all-features --locked --format-version 1 | python3 scripts/licences.py

Reads deny.toml and says the same of licences, bans and sources as cargo-deny, which takes minutes to
compile. Also: that fonts have their licence beside them, and that no crate that speaks to a network
is linked. Python's standard library is all it needs. Exit codes: 0 all is well, 1 something is not,
2 there is nothing to check.
"""

import json
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What a crate would be named by that opens connections of its own.
NETWORK = re.compile(
    r"^(reqwest|hyper|hyper-util|ureq|curl|curl-sys|isahc|surf|attohttpc|minreq|h2|quinn|tokio"
    r"|async-std|mio|socket2|native-tls|openssl|openssl-sys|rustls|tungstenite|hf-hub|trust-dns.*"
    r"|hickory-.*)$"
)


def allowed(expression: str, names: set[str]) -> bool:
    """Whether an SPDX expression can be met by these licences."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    place = 0

    def either() -> bool:
        nonlocal place
        value = both()
        while place < len(words) and words[place] == "OR":
            place += 1
            value = both() or value
        return value

    def both() -> bool:
        nonlocal place
        value = one()
        while place < len(words) and words[place] == "AND":
            place += 1
            value = one() and value
        return value

    def one() -> bool:
        nonlocal place
        word = words[place]
        place += 1
        if word == "(":
            value = either()
            if words[place] != ")":
                raise ValueError(expression)
            place += 1
            return value
        if place < len(words) and words[place] == "WITH":
            # An exception permits more, and never less.
            place += 2
        return word in names

    value = either()
    if place != len(words):
        raise ValueError(expression)
    return value


def main() -> int:
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    names = set(rules["licenses"]["allow"])
    faults = []
    try:
        packages = json.load(sys.stdin)["packages"]
    except (json.JSONDecodeError, KeyError, TypeError):
        print(
            "licences.py: standard input is not what cargo metadata prints. cargo says above why; where "
            "it cannot reach its registry, run cargo fetch with a network first",
            file=sys.stderr,
        )
        return 2
    for package in packages:
        name = f"{package['name']} {package['version']}"
        source = package["source"]
        if source is None:
            if package["name"] == "specgap" and package["license"] != "MIT OR Apache-2.0":
                faults.append(f"{name}: licence is {package['license']}")
            for one in package["dependencies"]:
                # Of a crate beside it any version will do.
                if one["req"] == "*" and one.get("path") is None:
                    faults.append(f"{name}: takes {one['name']} of any version; name one")
            continue
        if not source.startswith("registry+"):
            faults.append(f"{name}: comes from {source}, not from the registry")
        try:
            fits = allowed(package["license"] or "", names)
        except (ValueError, IndexError):
            fits = False
        if not fits:
            faults.append(f"{name}: licence {package['license']!r} is not allowed by deny.toml")
        if NETWORK.match(package["name"]):
            faults.append(f"{name}: speaks to a network; specgap does not at run time")
    for font in sorted((ROOT / "assets/fonts").glob("*.ttf")):
        if not font.with_name(f"{font.stem}-LICENSE.txt").is_file():
            faults.append(f"{font.relative_to(ROOT)}: no licence beside it")
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    if not faults:
        print(f"{len(packages)} packages: licences and sources fit deny.toml; none opens connections")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
