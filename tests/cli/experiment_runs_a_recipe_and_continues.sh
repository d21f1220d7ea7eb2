. "$(dirname "$0")/lib.subr"

expect 0 experiment --list
says "refinement-steps"
refuses "did you mean 'soft-masks'" experiment soft-mask
refuses "expected the name of an experiment" experiment
# What a user has to bring is said in one line.
refuses "needs --target" experiment main-imagenet

expect 0 experiment soft-masks perturbation-steps --quick --out found
says "perturbation-steps: "
for file in table.md table.csv section.md chart.svg S4/model.json eval-S4/results.json; do
  [ -s "found/perturbation-steps/$file" ] || fail "expected $file"
done
[ -s found/soft-masks/masks.png ] || fail "expected the figure"
grep -qF "0.6112" found/perturbation-steps/section.md || fail "expected the paper's figure"
grep -qF "Insertion rises from S = 4 to S = 16." found/perturbation-steps/section.md || fail "expected the claim"

# A second call trains nothing again and says the same.
cp found/perturbation-steps/section.md first.md
stat -c %Y found/perturbation-steps/S4/model.safetensors >before
expect 0 experiment perturbation-steps --quick --out found
stat -c %Y found/perturbation-steps/S4/model.safetensors | cmp -s - before || fail "expected no second training"
cmp -s first.md found/perturbation-steps/section.md || fail "expected the same section"

# Among several, one that cannot be run is skipped and the others are done.
expect 2 experiment main-imagenet soft-masks --quick --out found
grep -qF "main-imagenet: skipped: needs" err || fail "expected what is skipped"
says "soft-masks: "

# The page is made of the sections.
expect 0 experiment --page page/experiments.md --out found
grep -qF "## Perturbation steps" page/experiments.md || fail "expected the section"
[ -s page/images/experiments/soft-masks-masks.png ] || fail "expected the figure beside the page"
grep -qF -- '- `main-imagenet`' page/experiments.md || fail "expected what was not run"
