#include "transport/sim_puts.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"

enum sdr_status sdr_sim_puts_open(struct sdr_sim_puts *puts, uint64_t seed)
{
    if (puts->loss + puts->torn > 1)
        return sdr_fail(
            SDR_USAGE,
            "sim:loss and sim:torn are fractions of the same writes: together at most 1");
    puts->random = sdr_stream_open(seed, SDR_FOR_LOSSES, 0);
    return SDR_OK;
}

enum sdr_status sdr_sim_puts_expose(struct sdr_sim_puts *puts, struct sdr_run *run)
{
    const struct sdr_slots *slots = &run->network->slots;
    SDR_TRY(
        sdr_allocate(&puts->slots, (size_t)run->network->nodes, sdr_slots_size(slots), "slots"));
    sdr_slots_place(slots, run->network->nodes, puts->slots);
    return SDR_OK;
}

void sdr_sim_puts_free(struct sdr_sim_puts *puts)
{
    sdr_release(puts->slots);
}

bool sdr_sim_put_is_lost(struct sdr_sim_puts *puts, struct sdr_message *message)
{
    double draw = sdr_stream_uniform(&puts->random);
    if (draw >= puts->loss && draw < puts->loss + puts->torn)
        message->flags |= SDR_TORN;
    return draw < puts->loss;
}
