/* Workers present at the start; a worker that joins or returns; a worker that is lost. */
#ifndef SDR_SERVER_MEMBERSHIP_H
#define SDR_SERVER_MEMBERSHIP_H

#include "base/fail.h"

struct sdr_node;

enum sdr_status sdr_members_start(struct sdr_node *server, int workers);
enum sdr_status sdr_member_join(struct sdr_node *server, int worker);
void sdr_member_lose(struct sdr_node *server, int worker);

#endif
