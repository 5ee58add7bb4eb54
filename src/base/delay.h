/* Random delays: compute times and pauses. A delay is a sum of terms, such as const:1+exp:rate=0.5

    const:SECONDS   exp:rate=R (mean 1/R)   exp:mean=M   uniform:A-B
    normal:mean=M,deviation=D (truncated at 0)   lognormal:mean=M,sigma=S (M is the median)
    pareto:scale=S,shape=A   trace:FILE (draws a measured time, of the same worker if the file names
    workers: see trace.h) */
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
    struct sdr_trace trace; /* owned; at most one term is a trace */
};

/* `owner` names the option in error messages: "--compute". */
enum sdr_status sdr_delay_parse(const char *text, const char *owner, struct sdr_delay *delay);
void sdr_delay_free(struct sdr_delay *delay);
/* The delay in nanoseconds, a pure function of the arguments: draw `number` of worker `who`. */
int64_t sdr_delay_draw(const struct sdr_delay *delay, uint64_t seed, uint32_t who, uint32_t number);
/* The mean in seconds; infinite if the distribution has none. */
double sdr_delay_mean(const struct sdr_delay *delay);

#endif
