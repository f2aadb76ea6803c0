#!/usr/bin/env python3
"""Who owns what is linked into the binary, and under which licence.

    copyright.py TARGET DIRECTORY

writes DIRECTORY/copyright in Debian's machine-readable format (copyright-format/1.0), and into DIRECTORY/notices the
notices of the Rust library and of the C libraries that the toolchain links in. The crates are those of `cargo tree`
without build dependencies and procedural macros. A crate that offers none of the licences below is an error: then this
program needs the text of its licence.
"""

import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

# Of crates: the first that a crate offers is the one it is used under.
CRATES = {
    "MIT": """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.""",
    "Zlib": """\
This software is provided 'as-is', without any express or implied warranty. In no event will the authors be held liable
for any damages arising from the use of this software.

Permission is granted to anyone to use this software for any purpose, including commercial applications, and to alter it
and redistribute it freely, subject to the following restrictions:

1. The origin of this software must not be misrepresented; you must not claim that you wrote the original software. If
you use this software in a product, an acknowledgment in the product documentation would be appreciated but is not
required.

2. Altered source versions must be plainly marked as such, and must not be misrepresented as being the original
software.

3. This notice may not be removed or altered from any source distribution.""",
}

GNU = {
    "LGPL-2.1+": """\
The GNU C Library is free software; you can redistribute it and/or modify it under the terms of the GNU Lesser General
Public License as published by the Free Software Foundation; either version 2.1 of the License, or (at your option) any
later version. Parts of it have other notices: notices/glibc.gz. The sources of nicpin and its Cargo.lock suffice to
link it with another version of the library.

The text of version 2.1 of the licence is in /usr/share/common-licenses/LGPL-2.1.""",
    "GPL-3+ with GCC-exception-3.1": """\
GCC is free software; you can redistribute it and/or modify it under the terms of the GNU General Public License as
published by the Free Software Foundation; either version 3, or (at your option) any later version. Under Section 7 of
GPL version 3, you are granted additional permissions described in the GCC Runtime Library Exception, version 3.1, as
published by the Free Software Foundation: notices/gcc.gz has it.

The text of version 3 of the licence is in /usr/share/common-licenses/GPL-3.""",
}

RUST = "Copyright: The Rust Project Developers (https://thanks.rust-lang.org)"


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked(target: str) -> list[str]:
    """Name and version of each crate that is linked in, `nicpin` left out."""
    tree = run(
        "cargo", "tree", "--locked", "--target", target, "--edges", "normal,no-proc-macro", "--prefix", "none",
        "--format", "{p}",
    )
    crates = {" ".join(line.split()[:2]) for line in tree.splitlines() if line}
    return sorted(crate for crate in crates if not crate.startswith("nicpin "))


def licence(expression: str) -> str | None:
    """The licence that a crate is used under, of those that it offers."""
    offered = re.split(r"\s+OR\s+|/", expression)
    return next((name for name in CRATES if name in offered), None)


def holders(directory: Path, package: dict) -> list[str]:
    """The copyright lines of a crate's licence; where that has none, the authors whom the crate names."""
    for name in ["LICENSE-MIT", "LICENSE-MIT.md", "LICENSE", "LICENSE.md"]:
        path = directory / name
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            found = [line.strip() for line in text.splitlines() if re.match(r"\s*(copyright (\(c\)|©|\d)|\(c\) )", line, re.I)]
            if found:
                return [re.sub(r"^(copyright )?((\(c\)|©) )?", "", line, flags=re.I) for line in found]
    return package["authors"] or [f"the authors of {package['name']}"]


def paragraph(text: str) -> str:
    """A text as the continuation lines of a field."""
    lines: list[str] = []
    for part in text.split("\n\n"):
        lines += [*textwrap.wrap(part, 78, break_long_words=False, break_on_hyphens=False), "."]
    return "\n".join(f" {line}" for line in lines[:-1])


def notices(target: str, into: Path) -> list[str]:
    """The paragraphs of what the toolchain links in, and their notices as files."""
    into.mkdir(parents=True, exist_ok=True)
    sysroot = Path(run("rustc", "--print", "sysroot").strip())
    rustc = run("rustc", "--version").split()[1]
    library = sysroot / "share/doc/rust/COPYRIGHT-library.html"
    paragraphs = []
    comment = ""
    if library.is_file():
        shutil.copyfile(library, into / "rust-library.html")
        comment = "\nComment: notices/rust-library.html.gz has the notices of its parts."
    paragraphs.append(f"Files: rust-library-{rustc}\n{RUST}\nLicense: MIT{comment}")
    if target.endswith("-gnu"):
        gcc = run("gcc", "-dumpversion").strip().split(".")[0]
        for name, copyright_, licence, package in [
            ("glibc", "1991-2022 Free Software Foundation, Inc.", "LGPL-2.1+", "libc6-dev"),
            ("gcc", "1986-2022 Free Software Foundation, Inc.", "GPL-3+ with GCC-exception-3.1", f"gcc-{gcc}-base"),
        ]:
            shutil.copyfile(Path("/usr/share/doc") / package / "copyright", into / name)
            paragraphs.append(f"Files: {name}\nCopyright: {copyright_}\nLicense: {licence}")
    elif target.endswith("-musl"):
        paragraphs.append("Files: musl\nCopyright: 2005-2020 Rich Felker, et al.\nLicense: MIT")
    return paragraphs


def main() -> int:
    target, directory = sys.argv[1], Path(sys.argv[2])
    metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target))
    packages = {f"{package['name']} v{package['version']}": package for package in metadata["packages"]}
    by_holders: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for crate in linked(target):
        package = packages[crate]
        used_under = licence(package["license"] or "")
        if used_under is None:
            known = " or ".join(CRATES)
            print(f"{crate} is licensed under {package['license']}, not under {known}: add the text here", file=sys.stderr)
            return 1
        names = tuple(holders(Path(package["manifest_path"]).parent, package))
        by_holders.setdefault((used_under, names), []).append(crate.replace(" v", "-"))
    paragraphs = [
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: nicpin\n"
        "Comment: The program is one static binary. The paragraphs after the first\n"
        " are about what is linked into it, by name and version; crates that offer a\n"
        " choice of licences are used under MIT where they offer it.",
        "Files: *\nCopyright: 2026 The nicpin authors\nLicense: MIT",
    ]
    for (used_under, names), crates in sorted(by_holders.items(), key=lambda item: item[1]):
        files = "\n ".join(crates)
        owners = "\n ".join(names)
        paragraphs.append(f"Files: {files}\nCopyright: {owners}\nLicense: {used_under}")
    paragraphs += notices(target, directory / "notices")
    used = "\n".join(paragraphs)
    texts = CRATES | GNU
    paragraphs += [f"License: {name}\n{paragraph(text)}" for name, text in texts.items() if f"License: {name}\n" in used + "\n"]
    (directory / "copyright").write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
