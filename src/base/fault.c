/* A countdown per kind of operation; see fault.h. */
#include "base/fault.h"

#include <errno.h>
#include <stdatomic.h>

static _Atomic uint64_t operations[SDR_FAULT_KINDS];
static _Atomic uint64_t strike_at[SDR_FAULT_KINDS]; /* 0: not armed */

void sdr_fault_arm(enum sdr_fault kind, uint64_t nth)
{
    atomic_store(&operations[kind], 0);
    atomic_store(&strike_at[kind], nth);
}

uint64_t sdr_fault_count(enum sdr_fault kind)
{
    return atomic_load(&operations[kind]);
}

bool sdr_fault_strikes(enum sdr_fault kind)
{
    static const int cause[SDR_FAULT_KINDS] = {ENOMEM, EIO, ENOSPC};
    uint64_t at = atomic_load_explicit(&strike_at[kind], memory_order_relaxed);
    if (at == 0)
        return false;
    if (atomic_fetch_add(&operations[kind], 1) + 1 != at)
        return false;
    errno = cause[kind];
    return true;
}
