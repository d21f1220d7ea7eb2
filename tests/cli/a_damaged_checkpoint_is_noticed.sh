. "$(dirname "$0")/lib.subr"

fit="fit --arch vit_mini_8 --network width=64:depth=2:heads=2 --data cifar10:sample --holdout 40 --batch-size 16 --max-steps 2 --out run"
expect 0 $fit
size=$(wc -c <run/checkpoint.safetensors)
cp run/checkpoint.safetensors whole
# One byte of the numbers, of the state and of the names.
for at in $((size - 5)) $((size / 2)) $(grep -abo '"step' run/checkpoint.safetensors | head -1 | cut -d: -f1) 40; do
  cp whole run/checkpoint.safetensors
  byte=$(od -An -tu1 -j "$at" -N 1 whole)
  printf "\\$(printf %o $(((byte + 1) % 256)))" | dd of=run/checkpoint.safetensors bs=1 seek="$at" conv=notrunc 2>/dev/null
  cmp -s whole run/checkpoint.safetensors && fail "expected another byte at $at"
  refuses "checkpoint.safetensors" $fit --resume --quiet
done
cp whole run/checkpoint.safetensors
expect 0 $fit --resume
