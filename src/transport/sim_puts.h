/* One-sided writes in virtual time: the memory of the slots, and writes that are lost or torn. */
#ifndef SDR_TRANSPORT_SIM_PUTS_H
#define SDR_TRANSPORT_SIM_PUTS_H

#include "base/rng.h"
#include "server/message.h"

struct sdr_run;

struct sdr_sim_puts {
    double loss, torn; /* fractions of all writes; the caller sets them */
    struct sdr_stream random;
    unsigned char *slots; /* owned: see server/slots.h */
};

enum sdr_status sdr_sim_puts_open(struct sdr_sim_puts *puts, uint64_t seed);
enum sdr_status sdr_sim_puts_expose(struct sdr_sim_puts *puts, struct sdr_run *run);
void sdr_sim_puts_free(struct sdr_sim_puts *puts);
/* Whether a write is lost; if not, only a part of it may arrive. */
bool sdr_sim_put_is_lost(struct sdr_sim_puts *puts, struct sdr_message *message);

#endif
