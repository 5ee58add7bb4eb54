#!/bin/bash
# A Slurm job that survives its time limit and preemption. Copy it, adapt the #SBATCH lines, then
#   sbatch job.sh DATA [OPTIONS of sounder train]
# DATA and the run's folder must be visible to all nodes. Optional variables: SOUNDER=PROGRAM, RUN=DIR.
#
#SBATCH --job-name=sounder
#SBATCH --nodes=4
# One worker per task. Every task reads the data: use one task per core if that fits into the node's memory.
#SBATCH --ntasks-per-node=4
#SBATCH --time=04:00:00
# Every process gets SIGTERM two minutes before the time limit, and when the job is preempted.
#SBATCH --signal=TERM@120
# A requeued job keeps its id and appends to the same log.
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=sounder-%j.log
#
# On SIGTERM sounder writes a checkpoint and exits with 75. For a checkpoint at any other time:
#   scancel --signal=USR1 JOB
set -u
data=${1:?"which data? sbatch job.sh DATA [OPTIONS]"}
shift
run=${RUN:-run-$SLURM_JOB_ID}

# Resume from the newest checkpoint, if there is one.
resume=()
compgen -G "$run/checkpoint-*.safetensors" >/dev/null && resume=(--resume)

# In Slurm 22.05 a process may leave MPI_Init before those on other nodes can receive its messages, which
# occasionally crashes one of them. This setting prevents it.
export SLURM_PMIX_FENCE=ring

# Without --kill-on-bad-exit the other processes would wait for one that was killed.
srun --mpi=pmix --kill-on-bad-exit=1 "${SOUNDER:-sounder}" train "$data" \
    --transport mpi --sync k-async:2 --workers "$SLURM_NTASKS" --batch 32 --run "$run" "${resume[@]}" "$@"
code=$?

# Slurm requeues a preempted job only if it had to kill it; this one has exited by itself.
[ $code = 75 ] && scontrol requeue "$SLURM_JOB_ID"
exit $code
