. "$(dirname "$0")/lib.subr"

common="--target $FIXTURES/tiny --data cifar10:sample --limit 24 --holdout 4 --batch-size 4 --perturbation-steps 2 --grid-low 2 --grid-high 4 --channels 8
  --top-channels 8 --head-channels 8 --max-steps 2"
expect 0 train $common --search-images 2 --out searched
grep -q "searches the learning rates of refinement: 5 rates, 2 held-out images each (--no-search skips it)" err || fail "expected a word on the search"
grep -q '"lr": 0.0001' searched/model.json && echo "note: the search chose the default"
expect 0 train $common --no-search --out plain
grep -q "searches" err && fail "expected no search with --no-search"
grep -q '"lr": 0.0001' plain/model.json || fail "expected the paper's learning rate on the card"
# A run that was begun with the search may be finished without it.
expect 0 train $common --search-images 2 --no-search --resume --out searched
if command -v script >/dev/null; then
  TERM=xterm script -qec "$AHA train $(echo $common) --search-images 2 --out shown" /dev/null </dev/null | tr '\r' '\n' >out
  grep -q "search \[.*/s.*left" out || fail "expected a progress line of the search's own"
fi
