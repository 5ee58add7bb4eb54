#!/bin/bash
# Laws of the installed library: wherever it is put, pkg-config and CMake find it, and the examples compile
# and run against it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
: "${SOUNDER_SOURCE:?SOUNDER_SOURCE must be the folder of the sources}"
if [ -n "${SOUNDER_SANITIZE:-}" ]; then
    echo "skipped: programs would need the sanitizer's library too"
    exit 77
fi
for tool in cmake pkg-config "${CC:-cc}"; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is missing"; exit 77; }
done
prefix=$work/prefix
cmake --install "$(dirname "$sounder")" --prefix "$prefix" >out.txt 2>err.txt ||
    { complain "cmake --install"; finish; }

# What is installed is found by its own word alone, not by where it was configured to go.
pc=$(find "$prefix" -name sounder.pc)
libraries=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries
holds "there is a pkg-config file" test -n "$pc"
holds "pkg-config knows the version of the header's library" \
    test "$(pkg-config --modversion sounder)" = "$("$prefix/bin/sounder" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+')"
holds "pkg-config points to where the header is" prints <(pkg-config --cflags sounder) "$prefix/"
holds "only the one header is installed" test "$(find "$prefix/include" -type f | wc -l)" = 1
mkdir examples
for example in "$SOUNDER_SOURCE"/examples/*.c; do
    name=$(basename "$example" .c)
    # shellcheck disable=SC2046
    holds "$name compiles with pkg-config" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror "$example" \
        -o "examples/$name" $(pkg-config --cflags --libs sounder)
    # shellcheck disable=SC2046
    holds "$name links statically with pkg-config" "${CC:-cc}" -std=c11 "$example" -o "examples/$name-static" \
        $(pkg-config --cflags sounder) "$libraries/libsounder.a" \
        $(pkg-config --static --libs-only-l sounder | sed 's/-lsounder//')
done
holds "an example runs" examples/train_from_arrays >out.txt
holds "an example runs statically" env -u LD_LIBRARY_PATH examples/train_from_arrays-static >out.txt
if command -v c++ >/dev/null; then
    echo '#include <sounder/sounder.h>
int main() { return sdr_version()[0] == 0; }' >plus.cc
    # shellcheck disable=SC2046
    holds "the header is good C++" c++ -Wall -Wextra -Werror plus.cc -o plus $(pkg-config --cflags --libs sounder)
    holds "a C++ program runs" ./plus
fi

mkdir project
cat >project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
find_package(sounder 0.1 REQUIRED)
foreach(name train_from_arrays train_from_file predict)
    add_executable(\${name} $SOUNDER_SOURCE/examples/\${name}.c)
    target_link_libraries(\${name} PRIVATE sounder::sounder)
endforeach()
END
unset LD_LIBRARY_PATH PKG_CONFIG_PATH
holds "find_package finds it" cmake -S project -B project/build -DCMAKE_PREFIX_PATH="$prefix" >out.txt 2>err.txt
holds "examples compile with find_package" cmake --build project/build >out.txt 2>err.txt
holds "an example runs from a CMake project" project/build/train_from_file >out.txt 2>err.txt
holds "what it wrote is predicted with" project/build/predict example.model example.svm >out.txt
finish
