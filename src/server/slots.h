/* One-sided communication: every node has slots, memory that others write without its help, and
   that it reads when it likes. Nobody waits. What lies in a slot is overwritten by the next write;
   two writes at the same time, or a write during a read, may leave a mixture. Numbers in front of
   the bytes tell the reader: a mixture is *torn*, and writes that were never read are *missed*.

   Writers of the same process, and of others that map the memory, write to it themselves
   (sdr_slot_write). Where that is not possible, or time is virtual, bytes travel in a PUT message,
   which is written on arrival. */
#ifndef SDR_SERVER_SLOTS_H
#define SDR_SERVER_SLOTS_H

#include "server/message.h"

struct sdr_run;
struct sdr_node;
struct sdr_network;

/* The slots of all nodes. */
struct sdr_slots {
    int count;      /* per node; 0: there are none */
    uint64_t bytes; /* of each, at most */
    /* owned, per node: its slots, of the transport; NULL: they are in another memory */
    uint64_t **at;
    atomic_bool losses; /* a node was lost: a write that does not end may be its last one */
};

/* States that peers write into slots of others. accepted and rejected: of those that were found,
   torn ones too; the others were overwritten, lost on their way or came too late. */
struct sdr_state_counts {
    uint64_t sent, accepted, rejected, torn;
    uint64_t bytes; /* written to memory of others, not sent */
};

/* What was found in a slot. */
struct sdr_found {
    uint64_t bytes;  /* 0: nothing new */
    uint64_t missed; /* writes since the last read that this one has overwritten */
    bool torn;
};

/* All processes, before the launch: gives every node `count` slots. */
enum sdr_status sdr_slots_create(struct sdr_run *run, int count, uint64_t bytes);
void sdr_slots_free(struct sdr_slots *slots);
/* For transports: bytes of the slots of a node, a multiple of a cache line; zero at first. place:
   those of all nodes lie one behind the other. */
uint64_t sdr_slots_size(const struct sdr_slots *slots);
void sdr_slots_place(const struct sdr_slots *slots, int nodes, unsigned char *memory);

/* Writes a head of 8 bytes and `count` more; whole is false: it is broken off half-way, and what
   was there before remains behind. */
void sdr_slot_write(const struct sdr_slots *slots, int node, int slot, const void *head,
                    const void *bytes, uint64_t count, bool whole);
/* Into a slot of any node: directly, or by a message. Never waits. */
enum sdr_status sdr_slot_put(struct sdr_node *node, int to, int slot, const void *head,
                             const void *bytes, uint64_t count);
/* The node itself. `bytes` has room for slots->bytes. A write that is under way is left for the
   next time; one that has not ended since then is read as it is. */
void sdr_slot_read(const struct sdr_slots *slots, int node, int slot, void *bytes,
                   struct sdr_found *found);
/* A PUT has arrived. */
void sdr_slot_arrive(struct sdr_network *net, const struct sdr_message *message);

#endif
