. "$(dirname "$0")/lib.subr"

expect 0 inspect "$FIXTURES/tiny/model.safetensors"
says "parameters"
expect 0 inspect --json "$FIXTURES/tiny/model.safetensors"
says "\"architecture\""
