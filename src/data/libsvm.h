/* Shared by the readers of LIBSVM text: libsvm.c (the careful one, and the plug-in), libsvm_quick.c
   and libsvm_wide.c. */
#ifndef SDR_DATA_LIBSVM_H
#define SDR_DATA_LIBSVM_H

#include "base/cpu.h"
#include <stdbool.h>
#include <stdint.h>

/* A chunk being read. The arrays belong to the piece; `count` is their number of entries. */
struct sdr_libsvm_scan {
    const char *begin, *end;
    const char *line;     /* start of the current line */
    uint64_t line_number; /* from 1 */
    uint32_t *index;
    float *value;
    uint64_t count;
    int64_t last; /* the previous index of the row; at its start −1, or 0 if indices start at 1 */
};

/* Parses plain entries from `at` and returns where it stopped: at an entry for the careful reader,
   or at the byte after an entry without a blank behind it. */
typedef const char *sdr_libsvm_entries(struct sdr_libsvm_scan *scan, const char *at);
sdr_libsvm_entries *sdr_libsvm_quick(enum sdr_cpu level);
#if defined(__x86_64__)
sdr_libsvm_entries sdr_libsvm_avx2;
sdr_libsvm_entries sdr_libsvm_wide; /* libsvm_wide.c */
#endif

/* State of the format; public so that tests can choose the level. */
struct sdr_libsvm {
    int base; /* first index: 0, 1, or −1 if unknown yet */
    unsigned bits;
    bool labels_optional;
    sdr_libsvm_entries *entries;
};

#endif
