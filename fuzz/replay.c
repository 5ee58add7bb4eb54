/* All fuzz targets in one program without a fuzzer: each runs the files of its corpus. As a test it
   holds the targets to what they call, whatever the compiler is.
       replay CORPORA     the folder that has one for each target */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_TARGET(name) int fuzz_##name(const uint8_t *bytes, size_t count);
#include "fuzz_targets.h"
#undef FUZZ_TARGET

static const struct target {
    const char *name;
    int (*run)(const uint8_t *bytes, size_t count);
} targets[] = {
#define FUZZ_TARGET(name) {#name, fuzz_##name},
#include "fuzz_targets.h"
#undef FUZZ_TARGET
};

static void fail(const char *what, const char *path)
{
    fprintf(stderr, "%s '%s'\n", what, path);
    exit(1);
}

static void run_file(const struct target *target, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        fail("cannot read", path);
    long count = ftell(file);
    uint8_t *bytes = malloc(count > 0 ? (size_t)count : 1); /* ends where the bytes do */
    rewind(file);
    if (count < 0 || !bytes || fread(bytes, 1, (size_t)count, file) != (size_t)count)
        fail("cannot read", path);
    target->run(bytes, (size_t)count);
    free(bytes);
    fclose(file);
}

int main(int count, char **arguments)
{
    for (size_t t = 0; t < sizeof targets / sizeof *targets && count == 2; t++) {
        char folder[512], path[1024];
        int files = 0;
        snprintf(folder, sizeof folder, "%s/%s", arguments[1], targets[t].name);
        DIR *all = opendir(folder);
        if (!all)
            fail("there are no seeds in", folder);
        for (struct dirent *entry; (entry = readdir(all));) {
            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            run_file(&targets[t], path);
            files++;
        }
        closedir(all);
        printf("%s: %d seeds\n", targets[t].name, files);
    }
    return count == 2 ? 0 : 2;
}
