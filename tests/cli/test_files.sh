#!/bin/bash
# Laws of files that change while they are used, never end, or lie on a full disk: one sentence, the right exit code,
# and no model is lost.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# A line without end: refused within --memory, with its place.
{ small_data /dev/stdout; python3 -c 'print("1 1:1 2:" + "1" * 60000000)'; } | gzip -1 >long.svm.gz
refuses 3 'long.svm.gz:201: the line is longer than 4.2 MB, half of --memory 8.4 MB' train long.svm.gz --memory 8M \
    --threads 1
peak() { # peak ARGUMENTS...: megabytes that the program takes
    python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)' "$sounder" "$@"
}
if [ -z "${SOUNDER_SANITIZE:-}" ]; then
    holds "it takes about as much memory as --memory says" test "$(peak train long.svm.gz --memory 8M --threads 1)" -lt 40
fi
# Nor does a table whose first row never ends, while its columns are looked for.
python3 -c 'import sys, zlib
pack = zlib.compressobj(1, zlib.DEFLATED, 31)
sys.stdout.buffer.write(pack.compress(b"a,b,y\n") + b"".join(pack.compress(b"0" * 2000000) for _ in range(100)) + pack.flush())
' >long.csv.gz
refuses 3 'long.csv.gz:2: the line is longer than' train long.csv.gz --memory 40M --threads 1
if [ -z "${SOUNDER_SANITIZE:-}" ]; then
    holds "a table takes about as much memory as --memory says" test "$(peak train long.csv.gz --memory 40M --threads 1)" -lt 64
fi
# What is read whole is not unpacked beyond --memory either.
small_data small.svm
printf '%%%%MatrixMarket matrix array real general\n' >whole.mtx
head -c 20000000 /dev/zero | tr '\0' ' ' >>whole.mtx
gzip whole.mtx
refuses 3 'this format is read at once: raise --memory, or decompress the file' train whole.mtx.gz --labels small.svm --memory 2M

# A cache file that is cut off in use: exit code 5, one sentence, and the run goes on from its checkpoint.
succeeds generate sparse-classification data.svm --rows 20000 --features 3000 --nnz 20
succeeds convert data.svm data.sdc
cp data.sdc whole.sdc
epochs=2000
[ -z "${SOUNDER_SANITIZE:-}" ] || epochs=100
cut=(train data.sdc --optimizer adagrad --threads 1 --run cut --checkpoint-every 5000u)
"$sounder" "${cut[@]}" --epochs $epochs --schedule constant >out.txt 2>err.txt </dev/null &
pid=$!
for _ in $(seq 600); do
    compgen -G 'cut/checkpoint-*' >/dev/null && break
    kill -0 $pid 2>/dev/null || break
    sleep 0.05
done
truncate -s 8192 data.sdc
wait $pid
status=$?
refused 5 'data.sdc: the file was truncated while in use; create it again and rerun' 'train on a cache file that is cut off'
cp whole.sdc data.sdc
updates=$(basename "$(printf '%s\n' cut/checkpoint-*.safetensors | tail -n 1)" .safetensors | tr -dc 0-9 | sed 's/^0*//')
succeeds "${cut[@]}" --epochs $((updates / 20000 + 1)) --schedule constant --resume --quiet
holds "nothing half-written is left" test -z "$(find cut -name '*.tmp-*')"

# Cut off while a file is written: that goes too. The program is stopped as soon as its temporary file is there; where it
# was done before, once more.
mkdir written
holds "what was half-written when the input was cut off is gone" python3 - "$sounder" <<'END'
import os, shutil, signal, subprocess, sys
for attempt in range(200):
    shutil.copy("whole.sdc", "data.sdc")
    process = subprocess.Popen([sys.argv[1], "convert", "data.sdc", "written/copy.sdc"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while process.poll() is None and not os.listdir("written"):
        pass
    process.send_signal(signal.SIGSTOP)
    os.truncate("data.sdc", 8192)
    process.send_signal(signal.SIGCONT)
    code = process.wait()
    if code == 5:
        sys.exit(f"left: {os.listdir('written')}" if os.listdir("written") else 0)
    for name in os.listdir("written"):
        os.unlink("written/" + name)
sys.exit(f"never cut off in time; the last one ended with {code}")
END

# What a killed run left half-written goes when the folder is used again, also before the first checkpoint.
mkdir early
touch early/config.tmp-1-2-3
succeeds train small.svm --epochs 1 --run early --quiet
holds "the rest of a killed run is removed" test ! -e early/config.tmp-1-2-3

# A full disk: the finished model is written where there is room, and the sentence says where it is.
full=$work/full
mkdir "$full"
[ "$(id -u)" = 0 ] && mount -t tmpfs -o size=96k tmpfs "$full" 2>/dev/null || {
    echo "skipped: a full disk (not root: no disk can be filled)"
    finish
}
trap 'umount "$full"; rm -rf "$work"' EXIT
succeeds train data.svm --epochs 2 --quiet --out good.model
refuses 1 'cannot write .*full/run/checkpoint-.*the model was written to .kept.model' train data.svm --epochs 2 --quiet \
    --run "$full/run" --checkpoint-every 3000u --optimizer adagrad --out kept.model
holds "the model is the one of a run with room" cmp good.model kept.model
cp -r "$full/run" again
rm -rf "$full/run"
succeeds train data.svm --epochs 2 --quiet --run again --checkpoint-every 3000u --optimizer adagrad --resume --out again.model
holds "from the last checkpoint that fitted it goes on to the same model" cmp good.model again.model
head -c 98304 /dev/zero >"$full/fill" 2>/dev/null
refuses 1 'cannot write .*full/model.*the model is in .kept/model.safetensors' train data.svm --epochs 2 --quiet \
    --run kept --out "$full/model"
holds "the model in the run's folder is whole" cmp good.model kept/model.safetensors
finish
