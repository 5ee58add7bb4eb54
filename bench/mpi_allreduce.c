/* For bench/allreduce: seconds of an MPI_Allreduce, in place, of that many bytes, as a line of
   JSON. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int count = argc > 2 ? atoi(argv[1]) / (int)sizeof(float) : 0,
        times = argc > 2 ? atoi(argv[2]) : 0, rank;
    float *value = calloc((size_t)count + 1, sizeof *value);
    double began = 0;
    for (int i = -times / 10 - 1; i < times && value; i++) {
        if (i == 0)
            began = MPI_Wtime();
        MPI_Allreduce(MPI_IN_PLACE, value, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("{\"seconds\": %.9g}\n", (MPI_Wtime() - began) / times);
    free(value);
    return MPI_Finalize();
}
