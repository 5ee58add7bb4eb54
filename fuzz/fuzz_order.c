/* Orders of the coordinator to a server in another process (server/shards.h): any number of them,
   any bytes. Each is carried out and answered, or refused with a sentence; values that are asked
   for are those of the server's span.

   The first byte chooses the run. An order is: what (4 bytes), version, batch, value (8 each), the
   length of its body (1 byte, 255: none), and the body. */
#include "fuzz.h"

#include "run/run.h"
#include "server/network.h"
#include "server/server.h"

enum { ROWS = 6, FEATURES = 40, RUNS = 2, HEAD = 29 };

static struct sdr_run *make_run(bool penalties)
{
    static const uint64_t start[ROWS + 1] = {0, 2, 4, 6, 8, 10, 12};
    static const uint32_t column[2 * ROWS] = {0, 39, 3, 7, 3, 12, 1, 20, 5, 38, 0, 21};
    static const float value[2 * ROWS] = {1, 2, 1, 1, 3, 1, 2, 2, 1, 1, 1, 2};
    static const float label[ROWS] = {0, 1, 0, 1, 1, 0};
    const char *option[][2] = {{"sync", "ssp"},
                               {"workers", "2"},
                               {"servers", "2"},
                               {"transport", "threads"},
                               {"optimizer", penalties ? "sgd" : "adam"},
                               {"batch", "2"},
                               {"l2", penalties ? "0.01" : NULL}};
    struct sdr_data *data;
    struct sdr_options *options;
    struct sdr_run *run;
    FUZZ_CHECK(sdr_data_csr(start, column, value, ROWS, FEATURES, label, NULL, &data) == SDR_OK);
    FUZZ_CHECK(sdr_options_create(&options) == SDR_OK);
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (option[i][1])
            FUZZ_CHECK(sdr_options_set(options, option[i][0], option[i][1]) == SDR_OK);
    FUZZ_CHECK(sdr_run_create(options, data, NULL, &run) == SDR_OK);
    sdr_options_destroy(options);
    return run;
}

static void obey(struct sdr_run *run, const struct sdr_message *order)
{
    struct sdr_node *node = &run->network->node[0];
    struct sdr_span span = run->network->span[0];
    struct sdr_message answer;
    enum sdr_status status = sdr_obey(node, order);
    FUZZ_CHECK(status == SDR_OK || (status == SDR_RUNTIME && *sdr_error()));
    if (status != SDR_OK)
        return;
    FUZZ_CHECK(run->use.transport->receive(node, &answer) == SDR_OK);
    FUZZ_CHECK(answer.kind == SDR_MESSAGE_DONE && answer.about == order->about);
    if ((order->about & 0xff) == SDR_ORDER_READ)
        FUZZ_CHECK(order->version >= span.first && order->batch <= span.end &&
                   answer.body->bytes == (order->batch - order->version) * sizeof(float));
    if ((order->about & 0xff) == SDR_ORDER_PULL)
        FUZZ_CHECK(answer.body->bytes <= (span.end - span.first) * sizeof(float));
    sdr_body_drop(answer.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct sdr_run *runs[RUNS];
    if (count == 0)
        return 0;
    struct sdr_run **run = &runs[bytes[0] % RUNS];
    if (!*run)
        *run = make_run(bytes[0] % RUNS);
    for (size_t at = 1; at + HEAD <= count;) {
        struct sdr_message order = {.kind = SDR_MESSAGE_ORDER};
        memcpy(&order.about, bytes + at, 4);
        memcpy(&order.version, bytes + at + 4, 8);
        memcpy(&order.batch, bytes + at + 12, 8);
        memcpy(&order.value, bytes + at + 20, 8);
        size_t body = bytes[at + 28];
        at += HEAD;
        if (body < 255) {
            body = body < count - at ? body : count - at;
            FUZZ_CHECK(sdr_body_create((*run)->network->pool, body, &order.body) == SDR_OK);
            memcpy(order.body->data, bytes + at, body);
            at += body;
        }
        obey(*run, &order);
        sdr_body_drop(order.body);
    }
    if ((*run)->network->server[0].saved.any) /* the next input begins as this one did */
        obey(*run, &(struct sdr_message){.kind = SDR_MESSAGE_ORDER, .about = SDR_ORDER_RESTORE});
    return 0;
}
