/* Module that is loaded by transport/mpi.c: MPI's calls under our names. */
#include "transport/mpi/shim.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= SDR_MPI_REQUEST_BYTES, "a request fits");

/* Whether all processes can share memory. */
static bool together(int size)
{
    MPI_Comm near;
    int count = 0;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near) !=
        MPI_SUCCESS)
        return false;
    MPI_Comm_size(near, &count);
    MPI_Comm_free(&near);
    return count == size;
}

static const char *start(int *rank, int *size, bool *one_machine)
{
    int given, begun;
    /* Open MPI, once a peer has died, looks at its sockets a hundred times a second unless told
       otherwise. */
    setenv("OMPI_MCA_mpi_event_tick_rate", "100", 0);
    /* Over TCP Open MPI sends messages of up to 64 KB at once, and asks the receiver before larger
       ones. Every answer waits for a thread that sleeps, and while all cores compute, for a turn of
       the scheduler: milliseconds. Up to 1 MB the kernel carries the message meanwhile. Measured by
       bench/overlap, --allreduce bucket=1M. */
    setenv("OMPI_MCA_btl_tcp_eager_limit", "1048576", 0);
    setenv("OMPI_MCA_btl_tcp_max_send_size", "1048576", 0);
    /* Where there are more processes than cores, Open MPI gives way to other threads in every call.
       Nodes do that by themselves when they wait (mpi.c); beside other programs each call would
       take milliseconds. Calls that block, at the start and the end of a job, then compute through
       their time slices. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);
    MPI_Initialized(&begun);
    if (!begun && MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS)
        return "MPI does not start";
    if (begun)
        MPI_Query_thread(&given);
    if (given < MPI_THREAD_SERIALIZED)
        return "this MPI does not allow calls from several threads in turn";
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    *one_machine = together(*size);
    return NULL;
}

static const char *gather(const void *bytes, size_t count, void *all)
{
    if (MPI_Allgather(bytes, (int)count, MPI_BYTE, all, (int)count, MPI_BYTE, MPI_COMM_WORLD) !=
        MPI_SUCCESS)
        return "MPI does not start";
    return NULL;
}

static const char *send(int to, int tag, const void *bytes, size_t count, void *request)
{
    MPI_Request of;
    if (MPI_Isend(bytes, (int)count, MPI_BYTE, to, tag, MPI_COMM_WORLD, &of) != MPI_SUCCESS)
        return "MPI could not send";
    memcpy(request, &of, sizeof of);
    return NULL;
}

static const char *send_slowly(int to, int tag, const void *bytes, size_t count, void *request)
{
    MPI_Request of;
    if (MPI_Issend(bytes, (int)count, MPI_BYTE, to, tag, MPI_COMM_WORLD, &of) != MPI_SUCCESS)
        return "MPI could not send";
    memcpy(request, &of, sizeof of);
    return NULL;
}

static const char *receive(int from, int tag, void *bytes, size_t count, void *request)
{
    MPI_Request of;
    if (MPI_Irecv(bytes, (int)count, MPI_BYTE, from, tag, MPI_COMM_WORLD, &of) != MPI_SUCCESS)
        return "MPI could not receive";
    memcpy(request, &of, sizeof of);
    return NULL;
}

static const char *sum(float *value, size_t count, void *request)
{
    MPI_Request of;
    if (count > INT_MAX)
        return "MPI sums up at most 2^31 values at a time: give a smaller bucket";
    if (MPI_Iallreduce(MPI_IN_PLACE, value, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &of) !=
        MPI_SUCCESS)
        return "MPI could not begin a sum";
    memcpy(request, &of, sizeof of);
    return NULL;
}

static const char *test(void *request, bool *done)
{
    MPI_Request of;
    int flag = 0;
    memcpy(&of, request, sizeof of);
    if (MPI_Test(&of, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return "a message was lost on its way";
    memcpy(request, &of, sizeof of);
    *done = flag;
    return NULL;
}

/* MPI looks at all of them, and at its connections once; one by one it would look each time. */
static const char *test_receives(void *requests, int count, int *which, size_t *bytes)
{
    enum { TOGETHER = 256 };
    MPI_Request of[TOGETHER];
    unsigned char *at = requests;
    *which = -1;
    *bytes = 0;
    for (int first = 0; first < count; first += TOGETHER) {
        int some = count - first < TOGETHER ? count - first : TOGETHER, index = 0, flag = 0,
            got = 0;
        MPI_Status status;
        for (int i = 0; i < some; i++)
            memcpy(&of[i], at + (size_t)(first + i) * SDR_MPI_REQUEST_BYTES, sizeof *of);
        int failed = MPI_Testany(some, of, &index, &flag, &status) != MPI_SUCCESS;
        if ((!flag && !failed) || index < 0 || index >= some || index == MPI_UNDEFINED) {
            if (failed)
                return "a message was lost on its way";
            continue;
        }
        *which = first + index;
        memcpy(at + (size_t)*which * SDR_MPI_REQUEST_BYTES, &of[index], sizeof *of);
        if (failed || MPI_Get_count(&status, MPI_BYTE, &got) != MPI_SUCCESS || got < 0)
            return "a message was lost on its way";
        *bytes = (size_t)got;
        return NULL;
    }
    return NULL;
}

static void clear(void *request)
{
    MPI_Request none = MPI_REQUEST_NULL;
    memcpy(request, &none, sizeof none);
}

static bool cancel(void *request)
{
    MPI_Request of;
    int flag = 1;
    memcpy(&of, request, sizeof of);
    if (of != MPI_REQUEST_NULL &&
        (MPI_Cancel(&of) != MPI_SUCCESS || MPI_Test(&of, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS))
        return false;
    return flag;
}

/* Open MPI looks at its sockets in one of eight calls. */
static void progress(void)
{
    enum { CALLS = 16, NO_TAG = 12 };
    int rank, flag;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < CALLS; i++)
        MPI_Iprobe(rank, NO_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void finish(void)
{
    int over;
    MPI_Finalized(&over);
    if (!over)
        MPI_Finalize();
}

static void give_up(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

__attribute__((visibility("default"))) extern const struct sdr_mpi sdr_mpi_shim;
const struct sdr_mpi sdr_mpi_shim = {
    .version = SDR_MPI_SHIM,
    .start = start,
    .gather = gather,
    .send = send,
    .send_slowly = send_slowly,
    .receive = receive,
    .sum = sum,
    .test = test,
    .test_receives = test_receives,
    .clear = clear,
    .cancel = cancel,
    .progress = progress,
    .finish = finish,
    .give_up = give_up,
};
