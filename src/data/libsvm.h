/* What the readers of LIBSVM text share: libsvm.c (the careful one, and the plug-in),
   libsvm_quick.c and libsvm_wide.c. */
#ifndef SDR_DATA_LIBSVM_H
#define SDR_DATA_LIBSVM_H

#include "base/cpu.h"
#include <stdbool.h>
#include <stdint.h>

/* One chunk being read. The arrays are the piece's; `count` is how many entries they hold. */
struct sdr_libsvm_scan {
    const char *begin, *end;
    const char *line;     /* where the current line begins */
    uint64_t line_number; /* from 1 */
    uint32_t *index;
    float *value;
    uint64_t count;
    int64_t last; /* the index before in this row; −1 or, if indices start at 1, 0 */
};

/* Takes plain entries from `at` on and returns where it stopped: at an entry it leaves to the
   careful reader, or at the byte behind an entry that no blank follows. */
typedef const char *sdr_libsvm_entries(struct sdr_libsvm_scan *scan, const char *at);
sdr_libsvm_entries *sdr_libsvm_quick(enum sdr_cpu level);
#if defined(__x86_64__)
sdr_libsvm_entries sdr_libsvm_avx2;
sdr_libsvm_entries sdr_libsvm_wide; /* libsvm_wide.c */
#endif

/* The format's state, so that tests can choose the level. */
struct sdr_libsvm {
    int base; /* first index: 0, 1, or −1 for not known yet */
    unsigned bits;
    bool labels_optional;
    sdr_libsvm_entries *entries;
};

#endif
