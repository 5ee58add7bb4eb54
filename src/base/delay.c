#include "base/delay.h"
#include "base/rng.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum kind { CONSTANT, EXPONENTIAL, UNIFORM, NORMAL, LOGNORMAL, PARETO, TRACE };

static enum sdr_status bad(const char *owner, const char *text, const char *why)
{
    return sdr_fail(SDR_USAGE,
                    "%s %s: %s; it takes terms such as const:1+exp:rate=0.5, and uniform:A-B, "
                    "normal:mean=M,deviation=D, lognormal:mean=M,sigma=S, pareto:scale=S,shape=A, "
                    "trace:FILE",
                    owner, text, why);
}

/* Finds `key=NUMBER` in a comma-separated list. */
static bool find(const char *list, const char *key, double *value)
{
    size_t length = strlen(key);
    while (list && *list) {
        size_t end = strcspn(list, ",");
        if (end > length && strncmp(list, key, length) == 0 && list[length] == '=') {
            char number[64];
            snprintf(number, sizeof number, "%.*s", (int)(end - length - 1), list + length + 1);
            return sdr_parse_double(number, value);
        }
        list += end + (list[end] == ',');
    }
    return false;
}

static int keys(const char *list)
{
    int count = 1;
    for (; *list; list++)
        count += *list == ',';
    return count;
}

/* Finds the dash of A-B; a minus sign behind 'e' belongs to an exponent. */
static const char *find_dash(const char *text)
{
    for (const char *at = text; *at; at++)
        if (*at == '-' && at > text && at[-1] != 'e' && at[-1] != 'E')
            return at;
    return NULL;
}

static bool parse_term(const char *name, const char *rest, struct sdr_delay *delay)
{
    double a = 0, b = 0, rate;
    int kind = -1;
    const char *dash = find_dash(rest);
    char low[64];
    bool two = strcmp(name, "normal") == 0 || strcmp(name, "lognormal") == 0 ||
               strcmp(name, "pareto") == 0;
    if (keys(rest) != (two ? 2 : 1))
        return false;
    if (strcmp(name, "const") == 0 && sdr_parse_double(rest, &a)) {
        kind = CONSTANT;
    } else if (strcmp(name, "exp") == 0) {
        if (find(rest, "rate", &rate) && rate > 0)
            a = 1 / rate;
        else if (!find(rest, "mean", &a))
            return false;
        kind = EXPONENTIAL;
    } else if (strcmp(name, "uniform") == 0 && dash) {
        snprintf(low, sizeof low, "%.*s", (int)(dash - rest), rest);
        if (sdr_parse_double(low, &a) && sdr_parse_double(dash + 1, &b) && b >= a)
            kind = UNIFORM;
    } else if (strcmp(name, "normal") == 0 && find(rest, "mean", &a) &&
               find(rest, "deviation", &b)) {
        kind = NORMAL;
    } else if (strcmp(name, "lognormal") == 0 && find(rest, "mean", &a) &&
               find(rest, "sigma", &b)) {
        kind = LOGNORMAL;
    } else if (strcmp(name, "pareto") == 0 && find(rest, "scale", &a) && find(rest, "shape", &b)) {
        kind = b > 0 ? PARETO : -1;
    }
    if (kind < 0 || !isfinite(a) || !isfinite(b) || a < 0 || b < 0 || a > 1e9)
        return false;
    delay->term[delay->terms].kind = kind;
    delay->term[delay->terms].a = a;
    delay->term[delay->terms++].b = b;
    return true;
}

enum sdr_status sdr_delay_parse(const char *text, const char *owner, struct sdr_delay *delay)
{
    *delay = (struct sdr_delay){0};
    for (const char *at = text; *at;) {
        char term[1024];
        size_t length = strcspn(at, "+");
        if (at[length] == '+' && length && (at[length - 1] == 'e' || at[length - 1] == 'E') &&
            at[length + 1] >= '0' && at[length + 1] <= '9') /* 1e+3 */
            length += 1 + strcspn(at + length + 1, "+");
        if (delay->terms == SDR_DELAY_TERMS || length >= sizeof term)
            return bad(owner, text, "that is too much");
        memcpy(term, at, length);
        term[length] = 0;
        char *colon = strchr(term, ':');
        if (!colon)
            return bad(owner, text, "a term is NAME:VALUE");
        *colon = 0;
        if (strcmp(term, "trace") == 0) {
            if (delay->trace.count)
                return bad(owner, text, "there is one trace at most");
            SDR_TRY(sdr_trace_load(colon + 1, &delay->trace));
            delay->term[delay->terms++].kind = TRACE;
        } else if (!parse_term(term, colon + 1, delay)) {
            return bad(owner, text, "a term is wrong");
        }
        at += length;
        if (*at == '+' && !*++at)
            return bad(owner, text, "a term is missing");
    }
    return delay->terms ? SDR_OK : bad(owner, text, "it is empty");
}

void sdr_delay_free(struct sdr_delay *delay)
{
    sdr_trace_free(&delay->trace);
    *delay = (struct sdr_delay){0};
}

int64_t sdr_delay_draw(const struct sdr_delay *delay, uint64_t seed, uint32_t who, uint32_t number)
{
    double seconds = 0;
    struct sdr_stream stream = sdr_stream_open(seed, SDR_FOR_DELAY, (uint64_t)who << 32 | number);
    for (int i = 0; i < delay->terms; i++) {
        double a = delay->term[i].a, b = delay->term[i].b;
        switch ((enum kind)delay->term[i].kind) {
        case CONSTANT: seconds += a; break;
        case EXPONENTIAL: seconds -= a * log1p(-sdr_stream_uniform(&stream)); break;
        case UNIFORM: seconds += a + (b - a) * sdr_stream_uniform(&stream); break;
        case NORMAL: seconds += fmax(a + b * sdr_stream_normal(&stream), 0); break;
        case LOGNORMAL: seconds += a * exp(b * sdr_stream_normal(&stream)); break;
        case PARETO: seconds += a * pow(1 - sdr_stream_uniform(&stream), -1 / b); break;
        case TRACE:
            seconds += sdr_trace_pick(&delay->trace, who, sdr_stream_uniform(&stream));
            break;
        }
    }
    return (int64_t)llrint(fmin(seconds, 1e9) * 1e9);
}

double sdr_delay_mean(const struct sdr_delay *delay)
{
    double mean = 0;
    for (int i = 0; i < delay->terms; i++) {
        double a = delay->term[i].a, b = delay->term[i].b;
        switch ((enum kind)delay->term[i].kind) {
        case CONSTANT:
        case EXPONENTIAL: mean += a; break;
        case UNIFORM: mean += (a + b) / 2; break;
        case NORMAL:
            mean += a; /* ignores the truncation at 0 */
            break;
        case LOGNORMAL: mean += a * exp(b * b / 2); break;
        case PARETO: mean += b > 1 ? a * b / (b - 1) : INFINITY; break;
        case TRACE: mean += sdr_trace_mean(&delay->trace); break;
        }
    }
    return mean;
}
