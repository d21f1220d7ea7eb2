. "$(dirname "$0")/lib.subr"

eval="eval --target $FIXTURES/tiny --data cifar10:sample --limit 2 --methods random --timing-runs 0"
train="train --target $FIXTURES/tiny --data cifar10:sample --limit 24 --holdout 4 --batch-size 4 --perturbation-steps 2 --grid-low 2 --grid-high 4 --channels 8 --top-channels 8
  --head-channels 8 --search-images 0 --max-steps 1"
fit="fit --arch vit_mini_8 --network width=64:depth=2:heads=2 --data cifar10:sample --holdout 40 --batch-size 16 --max-steps 1"

# A folder with files of others is left alone; --overwrite writes among them; what the command itself made is no obstacle.
for command in "$eval" "$train" "$fit"; do
  rm -rf notes && mkdir notes && echo mine >notes/results.csv
  refuses "--overwrite" $command --out notes
  [ "$(ls -A notes)" = results.csv ] || fail "expected nothing written, found $(ls -A notes)"
  expect 0 $command --out notes --overwrite
done
refuses "already holds a run" $fit --out notes
expect 0 $fit --out notes --overwrite
refuses "--resume" $fit --out notes --overwrite --resume
expect 0 $eval --out results
expect 0 $eval --out results

# explain and compare replace what they made, and nothing else of the same name.
explain="explain --target $FIXTURES/tiny --method gradient --no-score"
compare="compare --target $FIXTURES/tiny --methods random"
mkdir maps && echo mine >maps/a.json && echo mine >maps/a.compare.png
refuses "a.json" $explain --out maps "$FIXTURES/good/a.png"
refuses "a.compare.png" $compare --out maps "$FIXTURES/good/a.png"
[ "$(cat maps/a.json maps/a.compare.png)" = "mine
mine" ] || fail "expected the files as they were"
for again in 1 2; do
  expect 0 $explain --out maps "$FIXTURES/good/b.jpg"
  expect 0 $compare --out maps "$FIXTURES/good/b.jpg"
done
expect 0 $explain --out maps --overwrite "$FIXTURES/good/a.png"
expect 0 $compare --out maps --overwrite "$FIXTURES/good/a.png"
expect 0 $compare --out maps "$FIXTURES/good/a.png"
grep -q '"map"' maps/a.json || fail "expected --overwrite to replace the file"

# Nothing can be resumed where nothing is.
for command in "$train" "$fit"; do refuses "found no nowhere" $command --out nowhere --resume; done
[ ! -e nowhere ] || fail "expected nothing written"
