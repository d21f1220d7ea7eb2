. "$(dirname "$0")/lib.subr"

expect 0 models
says "vit_b_16"
says "convnext_small"
expect 0 models --json
says "\"architectures\""
