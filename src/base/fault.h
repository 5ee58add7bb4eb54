/* Fault injection: tests make the n-th allocation, read or write fail. Unarmed it costs one
   load. */
#ifndef SDR_BASE_FAULT_H
#define SDR_BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum sdr_fault { SDR_FAULT_ALLOCATE, SDR_FAULT_READ, SDR_FAULT_WRITE, SDR_FAULT_KINDS };

/* Arms a fault: the nth operation from now (1 is the next) fails once; 0 disarms.
   For SDR_FAULT_WRITE the failure is ENOSPC, for SDR_FAULT_READ it is EIO. */
void sdr_fault_arm(enum sdr_fault kind, uint64_t nth);
/* Operations of this kind since the last arm. */
uint64_t sdr_fault_count(enum sdr_fault kind);
/* True if this operation must fail; sets errno. Called by memory.c and file.c. */
bool sdr_fault_strikes(enum sdr_fault kind);

#endif
