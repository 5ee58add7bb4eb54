"""Runs the commands of README.md and docs/*.md as they are written there: pages.py [mpi]

Commands are the lines of ```sh blocks, the lines behind "$ " of ```console blocks, and code within the text or a table that
begins with `sounder`, `mpirun`, `srun`, `sbatch` or a program of examples/. A page is run from top to bottom in a folder of its
own, with examples/ and build/ in it and the program on PATH. A ```console block also shows what the commands print: the same words must
come out; numbers may differ, and a line with "…" stands for any lines.

<!-- not run: REASON --> above a block leaves it out. Commands that need what is not installed are left out too. Every command
that was left out is printed with the reason, and the options of `sounder` in it are checked all the same. With mpi: the pages
that have an mpirun command, with these commands.

Also checked: links, the names of tests and options, the length of the README."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOUNDER, SOURCE = os.environ["SOUNDER"], os.environ["SOUNDER_SOURCE"]
MPI = sys.argv[1:] == ["mpi"]
COMMANDS = "train|compare|predict|eval|inspect|convert|generate|list"
COMMAND = re.compile(r"(sounder (%s) \S|(?:\w+=\S+ )*(mpirun|srun|sbatch) |examples/\S+ )" % COMMANDS)
SECONDS = 1200  # until a command is taken for hanging
README_LINES, README_COLUMNS = 150, 120
broken = 0


def complain(page, line, text):
    global broken
    broken += 1
    print("FAILED: %s:%d: %s" % (page, line, text))


# ---- what a page holds ----
class Command:
    def __init__(self, line, text, shown=None):
        self.line, self.text = line, text
        self.shown = shown  # lines of output; None: not shown


def sessions(line, text):
    """The commands of a console block, each with the output below it."""
    commands = []
    for i, row in enumerate(text):
        if row.startswith("$ "):
            commands.append(Command(line + i, row[2:], []))
        elif commands and commands[-1].text.endswith("\\") and not commands[-1].shown:
            commands[-1].text += "\n" + row
        elif commands:
            commands[-1].shown.append(row)
    return commands


def read(page):
    """Pairs of a reason not to run them (or None) and commands that share a shell, from top to bottom."""
    found, block, kind, start, reason = [], [], None, 0, None
    with open(os.path.join(SOURCE, page), encoding="utf-8") as file:
        for number, row in enumerate(file, 1):
            row = row.rstrip("\n")
            if kind is None and row.startswith("```"):
                kind, block, start = row[3:], [], number + 1
            elif kind is not None and row == "```":
                if kind == "sh":
                    found.append((reason, [Command(start, "\n".join(block))]))
                elif kind == "console":
                    found += [(reason, [command]) for command in sessions(start, block)]
                kind, reason = None, None
            elif kind is not None:
                block.append(row)
            else:
                left_out = re.match(r"<!-- not run: (.*) -->$", row)
                reason = left_out[1] if left_out else None if row else reason
                for text in re.findall(r"`([^`]+)`", row):
                    text = text.replace("\\|", "|")
                    if COMMAND.match(text):
                        found.append((None, [Command(number, text)]))
    if kind is not None:
        complain(page, start, "a block is not closed")
    return found


# ---- what a command needs ----
def works(*command):
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def missing(text):
    """Why a command cannot be run here, or None."""
    words = re.findall(r"\S+", text)
    if any(word == "make" for word in words[:1]) or re.search(r"^make( |$)", text, re.M):
        return "it builds the program that is tested"
    if "mpirun" in words and not MPI:
        return "test_mpi_readme runs it, where there is MPI"
    if {"srun", "sbatch", "examples/slurm/one_machine"} & set(words):  # not on a cluster of others
        return "test_slurm runs srun, sbatch and this job in a Slurm of its own, where it is installed"
    if re.search(r"^examples/\w+\.py", text, re.M) and not PYTHON:
        return "there is no Python with numpy"
    return None


def python_with_numpy():
    """Debian's, or that of PATH; None: neither has numpy."""
    found = [p for p in ("/usr/bin/python3", shutil.which("python3")) if p and works(p, "-c", "import numpy")]
    return found[0] if found else None


def check_options(page, command, folder):
    """Of a command that is not run: the program takes its options."""
    text = command.text.replace("\\\n", " ")
    for arguments in re.findall(r"(?:^|[\s/])sounder ((?:%s) [^;&|#>\n]*)" % COMMANDS, text):
        compared = arguments.startswith("compare")  # checks its options before it opens the data, which is not there
        done = subprocess.run(["bash", "-c", "sounder %s%s" % (arguments, "" if compared else " --print-config")], cwd=folder,
                              env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode and not (compared and done.returncode == 1):
            complain(page, command.line, "sounder %s: %s" % (arguments, done.stderr.strip()))


# ---- what it prints ----
def words(line):
    """A line without its numbers: 'read in 0.01 s, 2 workers' and 'read in 1.5 s, 1 worker' say the same."""
    line = re.sub(r"\b[0-9a-f]{32}\b", "#", line)
    line = re.sub(r"(?<![\w#])[-+]?\d[\d.,]*(e[-+]?\d+)?[kMG]?(?![A-Za-z_])", "#", line)
    line = re.sub(r"# (\w+)s\b", r"# \1", line)
    return " ".join(line.split())


def same_words(shown, printed):
    """Whether the lines shown are those printed, "…" standing for any of them."""
    if not shown:
        return not printed
    if shown[0].strip() == "…":
        return any(same_words(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and words(shown[0]) == words(printed[0]) and same_words(shown[1:], printed[1:])


def drawing(path):
    """What an SVG file says, without its numbers, and the kinds of lines in it."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return [words(t) for t in re.findall(r"<text[^>]*>([^<]*)", text) if words(t) != "#"], re.findall(r'<path class="([^"]*)', text)


def run(page, command, folder):
    done = subprocess.run(["timeout", "-k", "10", str(SECONDS), "bash", "-euc", command.text], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    printed = done.stdout.splitlines()
    if done.returncode:
        complain(page, command.line, "exit code %d: %s\n%s" % (done.returncode, command.text, "\n".join(printed[-8:])))
    elif command.shown is not None:
        shown = [line for line in command.shown if line]
        if not same_words(shown, [line for line in printed if line]):
            complain(page, command.line, "%s\n--- shown\n%s\n--- printed\n%s" % (command.text, "\n".join(shown), "\n".join(printed)))


def run_page(page):
    found = read(page)
    needs_mpi = [i for i, (reason, commands) in enumerate(found) if any("mpirun" in c.text.split() for c in commands)]
    if MPI and not needs_mpi:
        return
    last = needs_mpi[-1] + 1 if MPI else len(found)
    count = 0
    with tempfile.TemporaryDirectory(prefix="sounder-pages-") as folder:
        os.symlink(os.path.join(SOURCE, "examples"), os.path.join(folder, "examples"))
        os.symlink(os.path.dirname(SOUNDER), os.path.join(folder, "build"))
        os.mkdir(os.path.join(folder, "docs"))
        if PYTHON:
            os.symlink(PYTHON, os.path.join(folder, "python3"))
        environment["PATH"] = os.pathsep.join((os.path.dirname(SOUNDER), folder, os.environ["PATH"]))
        for reason, commands in found[:last]:
            for command in commands:
                why = reason or missing(command.text)
                if why:
                    check_options(page, command, folder)
                    print("not run: %s:%d: %s (%s)" % (page, command.line, " ".join(command.text.split()), why))
                else:
                    run(page, command, folder)
                    count += len(re.findall(r"\bsounder (?:%s)\b|^examples/" % COMMANDS, command.text, re.M)) or 1
        for made in glob.glob(os.path.join(folder, "docs", "*")):  # a picture in docs/ is what its command draws
            kept = os.path.join(SOURCE, "docs", os.path.basename(made))
            if not os.path.exists(kept) or drawing(made) != drawing(kept):
                complain(page, 0, "docs/%s is not what the command draws" % os.path.basename(made))
    print("%s: %d commands run" % (page, count))


# ---- what is named must be there ----
def anchors(path):
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def known_options():
    options = set()
    for command in COMMANDS.split("|"):
        text = subprocess.run([SOUNDER, command, "--help", "all"], stdout=subprocess.PIPE, text=True, check=True).stdout
        options |= set(re.findall(r"--[a-z][a-z0-9-]*", text))
    return options | {"--version", "--no-intercept", "--oversubscribe", "--job"}


def check_names(page, options):
    path = os.path.join(SOURCE, page)
    with open(path, encoding="utf-8") as file:
        rows = file.read().split("\n")
    tests = {os.path.splitext(os.path.basename(name))[0] for name in glob.glob(os.path.join(SOURCE, "tests", "*", "test_*"))}
    for number, row in enumerate(rows, 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", row):
            if re.match(r"https?:", target):
                continue
            name, _, anchor = target.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(there):
                complain(page, number, "the link %s leads nowhere" % target)
            elif anchor and anchor not in anchors(there):
                complain(page, number, "%s has no heading for #%s" % (name or page, anchor))
        for name in re.findall(r"\btest_[a-z_]+", row):
            if name not in tests:
                complain(page, number, "there is no test %s" % name)
        for name in re.findall(r"`(--[a-z][a-z0-9-]*)", row):
            if name not in options:
                complain(page, number, "there is no option %s" % name)
    if page == "README.md":
        if len(rows) > README_LINES:
            complain(page, len(rows), "longer than %d lines" % README_LINES)
        for number, row in enumerate(rows, 1):
            if len(row) > README_COLUMNS:
                complain(page, number, "longer than %d characters" % README_COLUMNS)


PYTHON = python_with_numpy()
environment = {**os.environ, "LC_ALL": "C.UTF-8"}
pages = ["README.md"] + sorted(os.path.relpath(p, SOURCE) for p in glob.glob(os.path.join(SOURCE, "docs", "*.md")))
if not MPI:
    options = known_options()
    for page in pages:
        check_names(page, options)
for page in pages:
    run_page(page)
sys.exit(1 if broken else 0)
