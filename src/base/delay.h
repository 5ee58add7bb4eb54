/* Random times: what a computation takes, and what holds it up. Written as a sum of terms,
       const:1+exp:rate=0.5
   Terms: const:SECONDS  exp:rate=R (mean 1/R)  exp:mean=M  uniform:A-B  normal:mean=M,deviation=D (never below 0)
          lognormal:mean=M,sigma=S (M: the median)  pareto:scale=S,shape=A
          trace:FILE (one of the times in it, the worker's own if it names workers: see trace.h) */
#ifndef SDR_BASE_DELAY_H
#define SDR_BASE_DELAY_H

#include "base/fail.h"
#include "base/trace.h"
#include <stdint.h>

enum { SDR_DELAY_TERMS = 8 };
struct sdr_delay {
    int terms;
    struct {
        int kind;
        double a, b;
    } term[SDR_DELAY_TERMS];
    struct sdr_trace trace; /* owned; of a trace, one at most */
};

/* `owner` is for the sentence: "--compute". */
enum sdr_status sdr_delay_parse(const char *text, const char *owner, struct sdr_delay *delay);
void sdr_delay_free(struct sdr_delay *delay);
/* Draw number `number` of somebody; a function of the arguments alone. Nanoseconds. */
int64_t sdr_delay_draw(const struct sdr_delay *delay, uint64_t seed, uint32_t who, uint32_t number);
/* The expected value in seconds; infinite where there is none. */
double sdr_delay_mean(const struct sdr_delay *delay);

#endif
