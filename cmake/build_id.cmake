# Writes OUTPUT, a C file with a hash of all sources of the library, the compiler and its flags, which decide bits too:
# processes of a job compare it. cmake -DSOURCE=… -DOUTPUT=… -DCOMPILER=… -P build_id.cmake
file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/src/*.c ${SOURCE}/src/*.h ${SOURCE}/include/*.h)
list(SORT files)
foreach(name ${files})
    file(MD5 ${SOURCE}/${name} hash)
    string(APPEND all "${name} ${hash}\n")
endforeach()
string(MD5 id "${COMPILER}\n${all}")
file(WRITE ${OUTPUT} "/* Written by the build. */\n#include \"run/run.h\"\nconst char sdr_build_id[] = \"sources-${id}\";\n")
