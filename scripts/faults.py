#!/usr/bin/env python3
"""Disturbs specgap while it writes, and looks what is left.

    python3 scripts/faults.py PROGRAM [--trials 100] [--seed 0] [--only NAME] [--keep FOLDER]
    python3 scripts/faults.py PROGRAM --seconds 8

A trial disturbs one run at a random moment: kill -9, SIGTERM, a disk that fills, files that may not
grow, a second writer, a clock that jumps, a folder that is read-only, few open files. Then it looks
that

- every file under its own name is whole, and old files are not mixed with new ones,
- every shard that a log lists is there and has the bytes that its header says,
- the run again succeeds and leaves what an undisturbed run leaves, byte for byte, and nothing else:
  no temporary file or folder, neither in its folder nor where the system keeps such files.

What breaks one of these is printed with its seed. A table of all trials comes at the end. Capture is
tried where the program has it and SPECGAP_ONNXRUNTIME names the runtime; a disk that fills, as root,
who may mount one; locks and renames that take long, where strace is installed; clocks, where faketime
is. Python's standard library is all it needs. With --seconds each kind gets an equal part of the
time. Exit codes: 0 all trials were fine, 1 one was not, 2 the undisturbed runs failed.
"""

import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TINY = ROOT / "tests/fixtures/tiny-model"
ENGINES = ROOT / "tests/fixtures/engines"
LIMIT = 120
NOBODY = 65534


# --- Logs ---------------------------------------------------------------------


def floats(rng, rows, width):
    values = [rng.gauss(0, 2) for _ in range(rows * width)]
    return struct.pack(f"<{rows * width}f", *values)


def npy(kind, shape, data):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def make_npz(path, rng, rows, width):
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("target_logits", "draft_logits"):
            archive.writestr(f"{name}.npy", npy("<f4", (rows, width), floats(rng, rows, width)))


def make_shard(path, rng, rows, width, first=0):
    tensors, data, places = {}, b"", list(range(first, first + rows))
    for name in ("target_logits", "draft_logits"):
        row = floats(rng, rows, width)
        tensors[name] = {"dtype": "F32", "shape": [rows, width], "data_offsets": [len(data), len(data) + len(row)]}
        data += row
    # Texts of four tokens.
    for name, values in (("prompt_id", [at // 4 for at in places]), ("position", [at % 4 for at in places])):
        packed = struct.pack(f"<{rows}q", *values)
        tensors[name] = {"dtype": "I64", "shape": [rows], "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    head = json.dumps(tensors).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)


def make_log(folder, rng, shards, rows, width):
    folder.mkdir()
    entries = []
    for number in range(shards):
        name = f"shard-{number:05}.safetensors"
        make_shard(folder / name, rng, rows, width, number * rows)
        entries.append({"file": name, "positions": rows})
    (folder / "log.json").write_text(json.dumps({"schema": 1, "metadata": {}, "shards": entries}))


def whole_shard(path):
    """Whether a safetensors file has the bytes that its header says."""
    data = path.read_bytes()
    if len(data) < 8:
        return False
    (length,) = struct.unpack("<Q", data[:8])
    if len(data) < 8 + length:
        return False
    tensors = json.loads(data[8 : 8 + length])
    ends = [value["data_offsets"][1] for key, value in tensors.items() if key != "__metadata__"]
    return len(data) == 8 + length + max(ends)


def log_faults(folder):
    return [fault for log in (folder, *folder.glob("*/")) for fault in faults_of_log(log)]


def faults_of_log(folder):
    index = folder / "log.json"
    if not index.exists():
        return []
    try:
        listed = json.loads(index.read_text())["shards"]
    except (ValueError, KeyError) as error:
        return [f"log.json is not whole: {error}"]
    return [
        f"{shard['file']} is listed and not whole"
        for shard in listed
        if not (folder / shard["file"]).is_file() or not whole_shard(folder / shard["file"])
    ]


def tree(folder):
    """All files by name; temporary ones and locks are told by their names."""
    if folder.is_file():
        return {"": folder.read_bytes()}
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != ".lock"
    }


def visible(files):
    return {name: data for name, data in files.items() if not any(p.startswith(".") for p in name.split("/"))}


# --- Jobs ---------------------------------------------------------------------


class Job:
    """A command that writes `out`, a folder or a file below the folder it runs in."""

    def __init__(self, name, arguments, out, kind):
        self.name, self.arguments, self.out, self.kind = name, arguments, out, kind
        self.results, self.seconds = [], 0.0


def jobs(program, made):
    """Each with two inputs, `one` and `two`, whose results differ under the same names."""
    rng = random.Random(7)
    for side in ("one", "two"):
        folder = made / side
        folder.mkdir()
        make_npz(folder / "log.npz", rng, 24, 40)
        prompts = ["Once upon a time", "Hi", "The quick brown fox jumps over", "12 + 34 ="]
        lines = [{"id": f"{side}{i}", "prompt": prompts[i % 4]} for i in range(16)]
        (folder / "prompts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        lines = (ENGINES / "vllm-scored-target.jsonl").read_text().splitlines(keepends=True)
        drafts = (ENGINES / "vllm-scored-draft.jsonl").read_text().splitlines(keepends=True)
        count = len(lines) if side == "one" else max(1, len(lines) // 2)
        (folder / "target.jsonl").write_text("".join(lines[:count]))
        (folder / "draft.jsonl").write_text("".join(drafts[:count]))
        for part in (0, 1):
            done = subprocess.run(
                [program, "gap", "log.npz", "--drafts", "2", "--temperature", "1.0", "-q", "--shard", f"{part + 1}/2",
                 "--partial", f"part{part}"],
                cwd=folder, capture_output=True, text=True,
            )
            if done.returncode != 0:
                sys.exit(f"error: the parts to merge could not be made: {done.stderr}")
    gap = ["gap", "log.npz", "--drafts", "2", "--temperature", "1.0", "-q"]
    every = [
        Job("gap --out", [*gap, "--out", "out/report"], "out/report", "folder"),
        Job("gap --partial", [*gap, "--partial", "out/part"], "out/part", "file"),
        Job("gap --positions", [*gap, "--positions", "out/all.csv"], "out/all.csv", "file"),
        Job("merge", ["merge", "part0", "part1", "-q", "--out", "out/report"], "out/report", "folder"),
        Job("import", ["import", "--from", "vllm", "--target-rows", "target.jsonl", "--draft-rows", "draft.jsonl",
                       "--prompt-tokens", "2", "--vocab", "64", "-q", "--out", "out/log"], "out/log", "new"),
    ]
    if "Usage" in subprocess.run([program, "capture", "--help"], capture_output=True, text=True).stdout \
            and os.environ.get("SPECGAP_ONNXRUNTIME"):
        models = ["--target", str(TINY / "target.onnx"), "--tokenizer", str(TINY / "tokenizer.json"),
                  "--prompts", "prompts.jsonl", "--device", "cpu", "--max-tokens", "8", "--batch", "1", "-q"]
        every += [
            Job("capture", ["capture", *models, "--draft", str(TINY / "draft.onnx"), "--out", "out/log"],
                "out/log", "log"),
            Job("capture, paths", ["capture", *models, "--draft", str(TINY / "draft.onnx"), "--top", "20", "--paths",
                                   "2", "--path-length", "3", "--every", "4", "--out", "out/log"],
                "out/log", "log"),
            Job("capture, two drafts", ["capture", *models, "--draft", str(TINY / "draft.onnx"), "--draft",
                                        str(TINY / "target.onnx"), "--out", "out/log"], "out/log", "log"),
        ]
    return every


class Bench:
    """A fresh folder for one trial: inputs of both sides, `out`, and a place for temporary files."""

    def __init__(self, program, made, keep):
        self.program, self.made, self.keep = program, made, keep
        self.here = pathlib.Path(tempfile.mkdtemp(dir=made, prefix="trial-"))
        (self.here / "out").mkdir()
        (self.here / "temporary").mkdir()
        self.mounted = False
        self.use(0)

    def use(self, side):
        """Puts inputs in place. Their names are the same, as commands are in the results."""
        for file in (self.made / ("one", "two")[side]).iterdir():
            shutil.copy(file, self.here / file.name)

    def beside(self):
        """Another folder with the inputs of side two, whose `out` is this one's."""
        other = self.here / "other"
        other.mkdir()
        for file in (self.made / "two").iterdir():
            shutil.copy(file, other / file.name)
        (other / "out").symlink_to(self.here / "out")
        return other

    def start(self, job, prefix=(), within=None, **more):
        environment = {**os.environ, "TMPDIR": str(self.here / "temporary"), "RAYON_NUM_THREADS": "2"}
        return subprocess.Popen(
            [*prefix, self.program, *job.arguments], cwd=within or self.here, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", **more,
        )

    def run(self, job, prefix=(), **more):
        running = self.start(job, prefix, **more)
        try:
            out, said = running.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()
            return None, f"no end after {LIMIT} s"
        return running.returncode, said

    def result(self, job):
        return tree(self.here / job.out)

    def mount(self, kib):
        (self.mounted and umount(self.here / "out"))
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=755", "tmpfs", str(self.here / "out")],
            capture_output=True,
        )
        self.mounted = done.returncode == 0
        return self.mounted

    def resize(self, kib, more=""):
        # A size of 0 would be no limit at all, and none can be set after it.
        kib = max(kib, 4)
        subprocess.run(["mount", "-o", f"remount,size={kib}k{more}", str(self.here / "out")], check=True)

    def strays(self):
        # Folders may go while they are walked.
        found = []
        for folder, inside, files in os.walk(self.here / "out"):
            hidden = [name for name in inside + files if name.startswith(".") and name != ".lock"]
            found += [os.path.relpath(os.path.join(folder, name), self.here) for name in hidden]
        return found + [f"temporary/{name}" for name in os.listdir(self.here / "temporary")]

    def end(self, failed):
        if self.mounted:
            if failed:
                shutil.copytree(self.here / "out", self.here / "out-copy", dirs_exist_ok=True)
            umount(self.here / "out")
        if failed and self.keep:
            self.keep.mkdir(parents=True, exist_ok=True)
            shutil.copytree(self.here, self.keep / self.here.name, dirs_exist_ok=True)
        shutil.rmtree(self.here, ignore_errors=True)


def umount(folder):
    subprocess.run(["umount", "-l", str(folder)], capture_output=True)


# --- What has to hold ---------------------------------------------------------


def between(bench, job, before):
    """What is wrong with what a disturbed run left; `before` is what was there."""
    if job.kind == "log":
        return log_faults(bench.here / job.out)
    here = visible(bench.result(job)) if (bench.here / job.out).exists() else {}
    faults = []
    sides = [result for result in (before, *job.results) if result]
    if here and not any(here.items() <= side.items() for side in sides):
        whole = all(any(side.get(name) == data for side in sides) for name, data in here.items())
        faults.append("old files are beside new ones" if whole else "a file is not whole")
    if job.kind == "file" and before and not here:
        faults.append("the file that was there is gone")
    if job.kind == "new" and here and here not in sides:
        faults.append("half a log has its name")
    return faults


def without_nodes(files):
    """Without the line of log.json about what ONNX Runtime profiled, to a file of its own."""
    cut = dict(files)
    for name in files:
        if name.endswith("log.json"):
            log = json.loads(files[name])
            for key in ("target_ran_on", "draft_ran_on"):
                log["metadata"].pop(key, None)
            cut[name] = json.dumps(log)
    return cut


def afterwards(bench, job, side=0, unprofiled=False):
    """Runs again, undisturbed, and compares."""
    bench.use(side)
    if job.kind == "new" and (bench.here / job.out).exists():
        code, said = 0, ""
        if visible(bench.result(job)) == job.results[side]:
            # It was complete. Any run beside it tidies up.
            shutil.rmtree(bench.here / job.out)
            code, said = bench.run(job)
    else:
        code, said = bench.run(job)
    if code != 0:
        return [f"the next run ends with {code}: {said.strip()[-300:]}"]
    faults = []
    there, wanted = visible(bench.result(job)), job.results[side]
    if unprofiled:
        there, wanted = without_nodes(there), without_nodes(wanted)
    if there != wanted:
        names = [name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name)]
        faults.append(f"the next run leaves something else: {sorted(names)[:4]}")
    if strays := bench.strays():
        faults.append(f"left behind: {strays[:4]}")
    return faults


def refused(code, said, allowed=(0, 2)):
    """A run that could not write says so in one line and in the terms of the contract."""
    if code not in allowed:
        return [f"exit code {code}: {said.strip()[-300:]}"]
    if code == 2 and "error:" not in said:
        return ["exit code 2 without a message"]
    if "panicked" in said or "internal error" in said:
        return [f"a bug: {said.strip()[-300:]}"]
    return []


# --- Disturbances -------------------------------------------------------------


def earlier(bench, job, rng):
    """In half of the trials there is an earlier result under the same names."""
    if job.kind not in ("folder", "file") or rng.random() < 0.5:
        return None
    bench.use(1)
    code, said = bench.run(job)
    bench.use(0)
    return job.results[1] if code == 0 else None


def stop_at_random(bench, job, rng, number):
    """Ends a run by a signal, at a random moment of all of it or of the time it writes."""
    before = earlier(bench, job, rng)
    faults, hit = [], False
    for _ in range(rng.choice((1, 1, 2, 3))):
        running = bench.start(job)
        if rng.random() < 0.5:
            # From its first sign in the folder on.
            seen = set(bench.strays())
            end = time.monotonic() + 4 * job.seconds
            while running.poll() is None and time.monotonic() < end and set(bench.strays()) <= seen:
                time.sleep(0.0005)
            time.sleep(rng.random() ** 2 * (0.1 if job.kind != "log" else job.seconds / 2))
        else:
            time.sleep(rng.random() * 1.1 * job.seconds)
        if running.poll() is None:
            running.send_signal(number)
        try:
            _, said = running.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()
            return [f"does not end on {signal.Signals(number).name}"], hit
        code = running.returncode
        hit |= code != 0
        # A log that import had written before is not written again. Capture obeys SIGTERM at the
        # next token and says so; everything else just ends.
        allowed = [0, -number]
        if job.kind == "new" and visible(bench.result(job)) in job.results:
            allowed.append(2)
        if job.kind == "log" and number == signal.SIGTERM:
            allowed.append(143)
        if code not in allowed:
            faults.append(f"exit code {code} after {signal.Signals(number).name}: {said.strip()[-200:]}")
        faults += between(bench, job, before)
    return faults + afterwards(bench, job), hit


def killed(bench, job, rng):
    return stop_at_random(bench, job, rng, signal.SIGKILL)


def terminated(bench, job, rng):
    return stop_at_random(bench, job, rng, signal.SIGTERM)


def disk_full(bench, job, rng):
    """The disk has room for a random part of what is written."""
    if not bench.mount(65536):
        return None
    before = earlier(bench, job, rng)
    # In pages of memory, of which an empty disk has one.
    needed = sum(len(data) // 4096 + 1 for data in job.results[0].values())
    room = 4 * rng.randrange(needed)
    stat = os.statvfs(bench.here / "out")
    used = (stat.f_blocks - stat.f_bfree) * stat.f_frsize // 1024
    bench.resize(used + room)
    code, said = bench.run(job)
    faults = refused(code, said) + between(bench, job, before)
    if before and code == 2 and visible(bench.result(job)) != before:
        faults.append("an error changed what was there")
    if job.kind != "log" and code == 2 and bench.strays():
        faults.append(f"an error leaves {bench.strays()[:3]}")
    if code == 2 and not any(word in said for word in ("space", "room", "full", "free")):
        faults.append(f"the message does not say that the disk is full: {said.strip()[-200:]}")
    bench.resize(65536)
    return faults + afterwards(bench, job), code == 2


def no_growth(bench, job, rng):
    """No file may grow beyond a random number of bytes."""
    before = earlier(bench, job, rng)
    most = int(2 ** rng.uniform(6, 19))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    code, said = bench.run(job, preexec_fn=limit)
    faults = refused(code, said) + between(bench, job, before)
    if before and code == 2 and visible(bench.result(job)) != before:
        faults.append("an error changed what was there")
    if job.kind != "log" and code == 2 and bench.strays():
        faults.append(f"an error leaves {bench.strays()[:3]}")
    return faults + afterwards(bench, job, unprofiled=True), code == 2


def delays(rng):
    if not shutil.which("strace"):
        return []
    calls = rng.sample(["flock", "rename", "renameat,renameat2", "fsync", "unlink,unlinkat", "openat"], 2)
    # Of openat only a few, as there are hundreds before anything is written.
    when = {"openat": f":when={rng.randrange(40, 300)}+{rng.randrange(20, 90)}"}
    inject = [
        f"--inject={call}:delay_{rng.choice(('enter', 'exit'))}={rng.randrange(1000, 60000)}{when.get(call, '')}"
        for call in calls
    ]
    return ["strace", "-f", "-qq", "-o", "/dev/null", f"--trace={','.join(calls)}", *inject]


def two_writers(bench, job, rng):
    """Two runs write to one place; in half of the trials what they write differs."""
    before = earlier(bench, job, rng)
    differ = job.kind in ("folder", "file") and rng.random() < 0.7
    within = bench.beside() if differ else None
    first = bench.start(job, delays(rng))
    time.sleep(rng.random() ** 2 * job.seconds)
    second = bench.start(job, delays(rng), within)
    codes, faults, words = [], [], ""
    for running in (first, second):
        try:
            _, said = running.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()
            return ["two writers wait for each other"], True
        codes.append(running.returncode)
        words += said
        faults += refused(running.returncode, said)
    if 0 not in codes:
        faults.append(f"both writers gave up: {words.strip()[-300:]}")
    if job.kind in ("folder", "file") and codes != [0, 0]:
        faults.append(f"a report's writer gave up: exit codes {codes}: {words.strip()[-300:]}")
    faults += between(bench, job, before)
    here = visible(bench.result(job))
    if not faults and here not in job.results:
        faults.append("what both left is no whole result")
    return faults + afterwards(bench, job), True


def clocks(bench, job, rng):
    """A clock that stands elsewhere, runs backwards or a thousand times too fast; files from then."""
    if not shutil.which("faketime"):
        return None
    how = rng.choice(("@1970-01-02 00:00:00", "@2037-12-31 23:59:59", "+0 x1000", "+0 x0.001", "-3000d", "+0 i-1.5",
                      "+0 i86400"))
    for file in bench.here.iterdir():
        moment = rng.choice((0, 1, 2**31 - 1, 2**33))
        os.utime(file, (moment, moment))
    code, said = bench.run(job, ["faketime", "-f", how])
    faults = [] if code == 0 else [f"exit code {code} with the clock {how}: {said.strip()[-200:]}"]
    if not faults and visible(bench.result(job)) != job.results[0]:
        faults.append(f"another result with the clock {how}")
    if job.kind in ("new", "log"):
        shutil.rmtree(bench.here / job.out, ignore_errors=True)
    return faults + afterwards(bench, job), True


def read_only(bench, job, rng):
    """The folder may not be written; as root, the program runs as somebody else or the disk is read-only."""
    before = earlier(bench, job, rng)
    out = bench.here / "out"
    more = {}
    if os.geteuid() == 0:
        if rng.random() < 0.5 and before is None and bench.mount(65536):
            bench.resize(65536, ",ro")
        else:
            more = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            bench.here.chmod(0o755)
            (bench.here / "temporary").chmod(0o777)
    if not bench.mounted:
        for folder in (out, *(one for one in out.rglob("*") if one.is_dir())):
            folder.chmod(0o555)
    code, said = bench.run(job, **more)
    faults = refused(code, said, (2,)) + between(bench, job, before)
    if bench.mounted:
        bench.resize(65536, ",rw")
    for folder in (out, *(one for one in out.rglob("*") if one.is_dir())):
        folder.chmod(0o755)
    if before and visible(bench.result(job)) != before:
        faults.append("an error changed what was there")
    if bench.strays():
        faults.append(f"an error leaves {bench.strays()[:3]}")
    return faults + afterwards(bench, job), code == 2


def few_files(bench, job, rng):
    """As many open files as a run just needs, or fewer."""
    most = rng.choice((4, 5, 6, 7, 8, 9, 10, 12, 16, 24, 64))

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    before = earlier(bench, job, rng)
    code, said = bench.run(job, preexec_fn=limit)
    # What the runtime of the models needs is not ours to say.
    allowed = (0, 2) if most < 64 else (0,)
    faults = refused(code, said, allowed) + between(bench, job, before)
    return faults + afterwards(bench, job), code != 0


def quiet(bench, job, rng):
    """Looks for calls to the network, and for anything in the user's home."""
    home = bench.here / "home"
    home.mkdir()
    calls = bench.here / "calls"
    traced = shutil.which("strace")
    prefix = ["strace", "-f", "-qq", "-o", str(calls), "--trace=network"] if traced else []
    prefix = ["env", "-u", "XDG_CACHE_HOME", "-u", "ORT_DISABLE_TELEMETRY", f"HOME={home}", *prefix]
    code, said = bench.run(job, prefix)
    faults = [] if code == 0 else [f"exit code {code}: {said.strip()[-200:]}"]
    if traced and calls.exists():
        ends = ("+++", "---")
        seen = [line for line in calls.read_text().splitlines() if not any(end in line for end in ends)]
        faults += [f"calls to the network: {seen[:3]}"] if seen else []
    left = [str(file.relative_to(home)) for file in home.rglob("*")]
    faults += [f"in the user's home: {left[:4]}"] if left else []
    if job.kind in ("new", "log"):
        shutil.rmtree(bench.here / job.out, ignore_errors=True)
    return faults + afterwards(bench, job), bool(traced)


KINDS = [
    ("kill -9", killed), ("SIGTERM", terminated), ("disk full", disk_full), ("file size limit", no_growth),
    ("two writers", two_writers), ("clock jumps", clocks), ("read-only folder", read_only), ("few open files", few_files),
    ("network, home", quiet),
]


# --- Sizes --------------------------------------------------------------------


def sizes(program, made, trials, only, rng):
    """Logs at the ends of what there is: vocabulary, drafts, shards, open files."""

    def gap(folder, *more, limit=None, ending=""):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

        done = subprocess.run(
            [program, "gap", str(folder) + ending, "--temperature", "1.0", "--format", "json", "-q", *map(str, more)],
            capture_output=True, text=True, preexec_fn=few if limit else None, timeout=600,
        )
        return done.returncode, done.stdout, done.stderr

    def check(name, made_how, runs):
        faults, start = [], time.monotonic()
        for run in range(runs):
            fault = made_how(random.Random(f"{rng.random()} {name} {run}"))
            if fault:
                faults.append(fault)
                print(f"error: {name}: {fault}", file=sys.stderr)
        return name, runs, len(faults), time.monotonic() - start

    def shards_few_files(rng):
        with tempfile.TemporaryDirectory(dir=made) as folder:
            log = pathlib.Path(folder) / "log"
            make_log(log, rng, 200, 2, rng.choice((2, 5, 17)))
            few, many = gap(log, "--drafts", 2, limit=64), gap(log, "--drafts", 2)
            return "" if few == many and few[0] == 0 else f"{few[0]} {few[2][-300:]}"

    def one_token(rng):
        with tempfile.TemporaryDirectory(dir=made) as folder:
            log = pathlib.Path(folder) / "log.npz"
            make_npz(log, rng, rng.choice((1, 2, 9)), 1)
            n = rng.choice((1, 2, 64))
            code, out, said = gap(log, "--drafts", n, "--laws", "with-replacement")
            if code != 0:
                return f"n = {n}: {code} {said[-300:]}"
            rates = [cell["optimal_acceptance_rate"]["mean"] for cell in json.loads(out)["cells"]]
            return "" if rates and all(abs(rate - 1) < 1e-9 for rate in rates) else f"alpha* is {rates}"

    def most_drafts(rng):
        with tempfile.TemporaryDirectory(dir=made) as folder:
            log = pathlib.Path(folder) / "log.npz"
            make_npz(log, rng, 2, rng.choice((64, 100)))
            code, out, said = gap(log, "--drafts", 64)
            if code != 0:
                return f"{code} {said[-300:]}"
            rates = [cell["optimal_acceptance_rate"]["mean"] for cell in json.loads(out)["cells"]]
            return "" if rates and all(0 <= rate <= 1 + 1e-9 for rate in rates) else f"alpha* is {rates}"

    def wide(rng):
        with tempfile.TemporaryDirectory(dir=made) as folder:
            log = pathlib.Path(folder) / "log.npz"
            make_npz(log, rng, 1, 10**6)
            code, out, said = gap(log, "--drafts", "1,2")
            return "" if code == 0 else f"{code} {said[-300:]}"

    def many_shards(count):
        def run(rng):
            with tempfile.TemporaryDirectory(dir=made) as folder:
                log = pathlib.Path(folder) / "log"
                make_log(log, rng, count, 1, 2)
                code, out, said = gap(log, "--drafts", 1, limit=64)
                if code != 0:
                    return f"{code} {said[-300:]}"
                positions = json.loads(out)["logs"][0]["positions"]
                return "" if positions == count else f"{positions} positions"

        return run

    few = max(1, trials // 20)
    for one in [
        ("200 shards, `ulimit -n 64`", shards_few_files, trials),
        ("V = 1, n to 64", one_token, trials),
        ("n = 64", most_drafts, trials),
        ("V = 1,000,000", wide, few),
        ("10,000 shards, `ulimit -n 64`", many_shards(10_000), few),
        ("100,000 shards, `ulimit -n 64`", many_shards(100_000), 1),
    ]:
        if only in f"sizes; {one[0]}":
            yield check(*one)


# --- The run ------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--trials", type=int, default=100, help="of each kind and command")
    parser.add_argument("--seconds", type=float, help="time for all of them, in place of --trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="kinds, commands or sizes whose name has this")
    parser.add_argument("--folder", type=pathlib.Path, help="where trials run")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for what failed trials leave")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    rows, failed = [], 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        made = pathlib.Path(folder)
        made.chmod(0o755)
        every = jobs(program, made)
        pairs = [
            (kind, disturb, job) for kind, disturb in KINDS for job in every
            if options.only in f"{kind}; {job.name}"
        ]
        for job in every:
            if not any(job is one for _, _, one in pairs):
                continue
            for side in (0, 1):
                bench = Bench(program, made, None)
                bench.use(side)
                start = time.monotonic()
                code, said = bench.run(job)
                job.seconds = time.monotonic() - start
                job.results.append(visible(bench.result(job)) if code == 0 else None)
                left = bench.strays()
                bench.end(False)
                if code != 0 or left:
                    print(f"error: {job.name}, undisturbed: {code} {said} {left}", file=sys.stderr)
                    return 2
            if job.results[0] == job.results[1]:
                print(f"error: {job.name}: both inputs give the same", file=sys.stderr)
                return 2
        for kind, disturb, job in pairs:
            number = hits = faults = 0
            start = time.monotonic()
            while True:
                if options.seconds is None and number >= options.trials:
                    break
                if options.seconds is not None and time.monotonic() - start > options.seconds / len(pairs):
                    break
                rng = random.Random(f"{options.seed} {kind} {job.name} {number}")
                bench = Bench(program, made, options.keep)
                outcome = disturb(bench, job, rng)
                if outcome is None:
                    bench.end(False)
                    break
                number += 1
                found, hit = outcome
                hits += hit
                if found:
                    faults += 1
                    place = f", kept in {options.keep / bench.here.name}" if options.keep else ""
                    print(f"error: {kind}, {job.name}, seed {options.seed}, trial {number - 1}{place}: "
                          + "; ".join(found), file=sys.stderr, flush=True)
                bench.end(bool(found))
            failed += faults
            rows.append((kind, job.name, number, hits, faults))
            print(f"{kind}, {job.name}: {number} trials, {hits} disturbed, {faults} with faults, "
                  f"{time.monotonic() - start:.0f} s", flush=True)
        if options.seconds is None:
            rng = random.Random(options.seed)
            for name, number, faults, seconds in sizes(program, made, options.trials, options.only, rng):
                failed += faults
                rows.append((name, "gap", number, number, faults))
                print(f"{name}: {number} runs, {faults} with faults, {seconds:.0f} s", flush=True)
    print("\n| disturbance | command | trials | disturbed | faults |\n| --- | --- | ---: | ---: | ---: |")
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
