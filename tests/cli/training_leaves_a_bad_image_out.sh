. "$(dirname "$0")/lib.subr"

expect 0 data export cifar10:sample --limit 24 --out photos/all
cp "$FIXTURES/broken/broken.png" photos/all/00003_broken.png
bad=photos/all/00003_broken.png
mkdir one && for i in 1 2 3 4; do cp "$FIXTURES/broken/broken.png" one/$i.png; done

train="train --target $FIXTURES/tiny --data folder:photos --holdout 4 --batch-size 4 --perturbation-steps 2 --grid-low 2 --grid-high 4 --channels 8 --top-channels 8
  --head-channels 8 --search-images 0 --epochs 2"
fit="fit --arch vit_mini_8 --network width=64:depth=2:heads=2 --data folder:photos --holdout 4 --batch-size 4 --epochs 2 --seed 3"

# Named once with its reason, the others are learned from, the result is there, the exit code says that one failed.
for command in train fit; do
  eval "call=\$$command"
  expect 1 $call --out $command
  [ "$(grep -c "$bad: " err)" -eq 1 ] || fail "$command: expected the image once on stderr"
  grep -qF "24 of 25 images" err || fail "$command: expected '24 of 25 images' on stderr"
  [ -s $command/model.safetensors ] || fail "$command: expected a model"
  refuses "$bad" $call --strict --quiet --out strict_$command
done

# Two workers leave out the same.
expect 1 $train --workers 2 --norm-group 2 --out two --json
grep -qF "24 of 25 images" err || fail "expected '24 of 25 images' of two workers"
says "00003_broken.png"

# And learn the same, bit for bit where every process has one thread. Two threads add up in another order, and a bias before a BatchNorm, whose
# gradient is zero but for rounding, then takes other steps of Adam (up to the learning rate each): measured 5e-3 after 10 steps, with or without
# a bad image.
expect 1 $train --threads 1 --norm-group 2 --out one_worker
expect 1 $train --threads 1 --norm-group 2 --workers 2 --out two_workers
cmp one_worker/model.safetensors two_workers/model.safetensors || fail "expected the same weights from two workers"
