"""What every benchmark asks of the machine: the CPU levels that Sounder can run at, and the best kernels for its peers."""
import os, subprocess, sys

ASK = """import ctypes, glob
for path in glob.glob('/usr/lib/*/openblas-pthread/libopenblas.so.0') + glob.glob('/usr/lib/*/libopenblas.so.0'):
    library = ctypes.CDLL(path)
    library.openblas_get_corename.restype = ctypes.c_char_p
    print(library.openblas_get_corename().decode())
    break
"""
CANDIDATES = {"avx2": ["Haswell", "Zen"], "avx512f": ["SkylakeX"], "avx512_bf16": ["Cooperlake"]}  # by what the CPU needs
MULTIPLY = """import numpy, time
a, b, c = (numpy.ones(shape, numpy.float32) for shape in ((1024, 1024), (128, 784), (784, 300)))
a @ a
best = 1e9
for _ in range(5):
    begun = time.monotonic()
    a @ a
    for _ in range(40):
        b @ c
    best = min(best, time.monotonic() - begun)
print(best)
"""


def ask(program, kernels):
    """What a new process prints that is told to take these kernels, or, for "", its own choice."""
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": "1"}
    if not kernels:
        del environment["OPENBLAS_CORETYPE"]
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment).stdout.strip()


def take_best_kernels():
    """OpenBLAS takes kernels for an older CPU if it does not know this one, or if the environment says so. Those that multiply
    fastest are chosen here, for this process, if it has not loaded the library yet, and for those that it starts. Prints which they
    are."""
    flags = open("/proc/cpuinfo").read().split() if os.path.exists("/proc/cpuinfo") else []
    given = os.environ.pop("OPENBLAS_CORETYPE", "")
    if ask(ASK, ""):
        known = {"", given, *(kernels for flag, of in CANDIDATES.items() if flag in flags for kernels in of)}
        seconds = {kernels: float(ask(MULTIPLY, kernels) or "inf") for kernels in known}
        best = min(seconds, key=seconds.get)
        if seconds[best] < 0.95 * seconds[""]:
            os.environ["OPENBLAS_CORETYPE"] = best
    print(f"OpenBLAS has the kernels of {ask(ASK, os.environ.get('OPENBLAS_CORETYPE', '')) or 'none'}", flush=True)


def levels_of(sounder):
    """The levels worth a column: all vector levels that this CPU has, the highest first; without any, the portable one."""
    def has(level):
        asked = subprocess.run([sounder, "train", "/dev/null", "--cpu", level], capture_output=True, text=True)
        return "--cpu" not in asked.stderr
    return [level for level in ("avx512", "avx2", "neon") if has(level)] or ["portable"]
