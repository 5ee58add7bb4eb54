"""What every benchmark asks of the machine: the CPU levels that Sounder can run at, and the best kernels for its peers."""
import os, subprocess, sys

ASK = """import ctypes, glob
for path in glob.glob('/usr/lib/*/openblas-pthread/libopenblas.so.0') + glob.glob('/usr/lib/*/libopenblas.so.0'):
    library = ctypes.CDLL(path)
    library.openblas_get_corename.restype = ctypes.c_char_p
    print(library.openblas_get_corename().decode())
    break
"""
OLD = ("Prescott", "Core2", "Nehalem", "Sandybridge")


def kernels_of_openblas():
    """The kernels that a new process takes."""
    return subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True).stdout.strip() or "none"


def take_best_kernels():
    """OpenBLAS takes old kernels on a CPU that it does not know: then they are chosen here, for this process, if it has not
    loaded the library yet, and for those that it starts. Prints which they are."""
    flags = open("/proc/cpuinfo").read() if os.path.exists("/proc/cpuinfo") else ""
    if "OPENBLAS_CORETYPE" not in os.environ and kernels_of_openblas() in OLD and " avx2 " in flags:
        os.environ["OPENBLAS_CORETYPE"] = "SkylakeX" if " avx512f " in flags else "Haswell"
    print(f"OpenBLAS has the kernels of {kernels_of_openblas()}", flush=True)


def levels_of(sounder):
    """The levels worth a column: all vector levels that this CPU has, the highest first; without any, the portable one."""
    def has(level):
        asked = subprocess.run([sounder, "train", "/dev/null", "--cpu", level], capture_output=True, text=True)
        return "--cpu" not in asked.stderr
    return [level for level in ("avx512", "avx2", "neon") if has(level)] or ["portable"]
