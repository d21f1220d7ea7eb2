. "$(dirname "$0")/lib.subr"
command -v python3 >/dev/null || { echo "no python3: skipped"; exit 0; }

explain="explain --target cifar10-vit4 --no-score --json"
expect 0 data export cifar10:sample --limit 1 --out photos

# Less than a step: the explainer's own map, and a word.
expect 0 $explain --budget 1ms --out little photos
says '"refine": 0'
grep -q "below one refinement step" err || fail "expected a word on the budget"
expect 0 $explain --out none photos
cmp little/*.npy none/*.npy || fail "expected the map of T = 0"

# The first step is not begun where it would end too late: what the map took stays within the budget.
expect 0 $explain --refine 1 photos
one=$(python3 -c 'import json; print(int(1000 * json.load(open("out"))[0]["seconds"]))')
# Another process may take the CPU in the middle of a step: the best of three runs counts.
for budget in $((one / 3 + 1)) $((4 * one)); do
  kept=no
  for run in 1 2 3; do
    expect 0 $explain --budget ${budget}ms photos
    python3 - $budget <<'PY' && kept=yes && break
import json, sys
made = json.load(open("out"))[0]
sys.exit(1000 * made["seconds"] > 1.05 * float(sys.argv[1]))
PY
  done
  [ $kept = yes ] || fail "$budget ms: expected the budget to be kept to 5 %"
done
python3 -c 'import json; assert json.load(open("out"))[0]["refine"] > 0' || fail "expected steps where the budget is that of several"

refuses "unit" $explain --quiet --budget 200 photos
refuses "unit" $explain --quiet --budget 0ms photos
refuses "T once" $explain --quiet --method aha:T=3 --refine 5 photos
