"""A C library as a kernel of harness.py; header_kernel.c says what functions it has."""

import ctypes
import functools
import pathlib
import shutil
import subprocess
import tempfile

import numpy

import reference

RULES = ("token", "one_hot", "carried_block", "carried", "rrs", "rrs_wo", "level_4", "exact_match",
         "traversal", "traversal_4")
LACKS = -3


def compiled(source, *more):
    """A library of a C file, and its folder, which lasts as long as this object."""
    folder = tempfile.TemporaryDirectory()
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise FileNotFoundError("there is no C compiler: give a library")
    path = str(pathlib.Path(folder.name) / "kernel.so")
    flags = ["-std=c99", "-O3", *more, "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(source), "-o", path], check=True)
    return path, folder


class Kernel:
    """Functions for the harness of all rules that the library has."""

    def __init__(self, path):
        self.folder = None
        if str(path).endswith(".c"):
            path, self.folder = compiled(path)
        library = ctypes.CDLL(str(pathlib.Path(path).resolve()))
        if hasattr(library, "shared_gumbel"):
            self.shared_gumbel = functools.partial(by_noise, library.shared_gumbel)
        for rule in RULES:
            function = getattr(library, rule, None)
            if function is None:
                continue
            one = Rule(rule, function)
            setattr(self, rule, reference.by_coins(one.coins))
            if rule in ("token", "one_hot", "carried", "carried_block"):
                setattr(self, f"{rule}_coins", one.coins)
            if rule in ("traversal", "traversal_4"):
                setattr(self, rule, reference.tree_by_coins(one.coins))
                setattr(self, f"{rule}_coins", one.coins)
            if rule in ("rrs", "rrs_wo", "level_4", "exact_match"):
                setattr(self, rule, reference.by_coins(lambda *args, of=one: of.coins(*args)[1]))
            if rule == "token":
                self.token_call = reference.call_by_coins(one.call_coins)
                self.token_call_coins = one.call_coins


def by_noise(function, vector, noise):
    """Drafts and output of each noise, and which draft that is."""
    p, q, noise = (numpy.ascontiguousarray(rows, numpy.float32) for rows in (vector.target, vector.draft, noise))
    drafts = numpy.empty((len(noise), vector.noise_drafts.shape[1]), numpy.int32)
    token, slot = numpy.empty(len(noise), numpy.int32), numpy.empty(len(noise), numpy.int64)
    pointer = ctypes.c_void_p
    function.argtypes = [pointer, pointer, ctypes.c_int, ctypes.c_int, pointer, pointer, pointer]
    for i, row in enumerate(noise):
        slot[i] = function(p.ctypes.data, q.ctypes.data, p.shape[-1], drafts.shape[1], row.ctypes.data,
                           drafts[i].ctypes.data, token.ctypes.data + 4 * i)
    return drafts, token, slot


class Rule:
    def __init__(self, name, function):
        self.name, self.function = name, function
        pointer, number = ctypes.c_void_p, ctypes.c_int
        function.argtypes = [pointer, pointer, number, number, *[pointer] * 2, number, *[pointer] * 3]

    def coins(self, vector, coins, final_coin):
        p, q, drafts = vector.target, vector.draft, getattr(vector, "drafts", None)
        parents, iid, carry, order = None, self.name == "rrs", getattr(vector, "carry", None), None
        if drafts is None:  # a tree
            drafts, parents, iid = vector.tokens, vector.parents, vector.law == "with-replacement"
            if vector.law == "stratified-independent":
                return None
        if self.name == "level_4":
            order = numpy.argsort(-q[0], kind="stable")
            p, q, drafts = p[:, order], q[:, order], numpy.argsort(order)[drafts]
        ended = self.rounds(p, q, drafts, coins, final_coin, parents, iid, carry)
        if order is not None and ended is not None:
            ended = ended[0], numpy.where(ended[1] < 0, -1, order[ended[1]])
        return ended

    def rounds(self, p, q, drafts, coins, final_coin, parents=None, iid=False, carry=None):
        """One round for each row of coins. `None` where the library lacks this; token -1 refuses."""
        p, q = (numpy.ascontiguousarray(rows, numpy.float32) for rows in (p, q))
        ids = numpy.ascontiguousarray(drafts, numpy.int32)
        up = None if parents is None else numpy.ascontiguousarray(parents, numpy.int32)
        numbers = numpy.ascontiguousarray(numpy.column_stack([coins, final_coin]), numpy.float64)
        many = len(numbers)
        # A number of 1 is what f32 makes of those just below.
        numpy.minimum(numbers, 1 - 2.0**-53, out=numbers)
        kept, token = numpy.zeros(many, numpy.int64), numpy.full(many, -1, numpy.int32)
        carries = None if carry is None else numpy.repeat(carry[None].astype(numpy.float64), many, 0)
        first, next_token = numbers.ctypes.data, token.ctypes.data
        at = [p.ctypes.data, q.ctypes.data, p.shape[-1], len(ids), ids.ctypes.data, up.ctypes.data if parents is not None else None, int(iid)]
        step = numbers.strides[0]
        for i in range(many):
            behind = None if carries is None else carries[i].ctypes.data
            kept[i] = self.function(*at, first + i * step, behind, next_token + 4 * i)
        if (kept == LACKS).any():
            return None
        token[kept < 0] = -1
        kept = numpy.maximum(kept, 0)
        return (kept, token) if carries is None else (kept, token, carries)

    def call_coins(self, call, coins, final_coin):
        coins, final_coin = numpy.asarray(coins), numpy.asarray(final_coin)
        accepted = numpy.zeros(final_coin.shape, numpy.int64)
        token = numpy.full(final_coin.shape, -1)
        for request in range(final_coin.shape[1]):
            count = min(int(call.counts[request]), int(call.verified[request]))
            p = [reference.target_row(call, request, place) for place in range(count + 1)]
            q = [self.draft(call, request, place) for place in range(count)]
            if any(row is None for row in p):
                p = numpy.full((count + 1, call.target_logits.shape[-1]), numpy.nan)
            drafts = call.draft_tokens[request][:count]
            numbers = coins[:, request, :count]
            q = numpy.reshape(q, (count, len(p[0])))
            accepted[:, request], token[:, request] = self.rounds(p, q, drafts, numbers, final_coin[:, request])
        return accepted, token

    @staticmethod
    def draft(call, request, place):
        q = numpy.zeros(call.target_logits.shape[-1])
        numpy.add.at(q, call.d2t, numpy.asarray(call.draft_rows[request][place], numpy.float64))
        return q
