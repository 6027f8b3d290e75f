# Numbers the ranks of all slices one after another, which the downward API cannot: slice-rank RANKS COMMAND...
# RANKS is the number of ranks of a slice; the Job controller sets JOB_COMPLETION_INDEX.
ranks=$1
shift
export JAX_PROCESS_ID="${JAX_PROCESS_ID:-$((JAX_PARTITION_INDEX * ranks + JOB_COMPLETION_INDEX))}"
exec "$@"
