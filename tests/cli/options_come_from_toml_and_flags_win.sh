. "$(dirname "$0")/lib.subr"

printf "topk = 1\njson = true\n" > options.toml
expect 0 classify --target "$FIXTURES/tiny" --config options.toml "$FIXTURES/good/a.png"
[ "$(grep -c probability out)" -eq 1 ] || fail "expected topk from the file"
expect 0 classify --target "$FIXTURES/tiny" --config options.toml --topk 4 "$FIXTURES/good/a.png"
[ "$(grep -c probability out)" -eq 4 ] || fail "expected topk from the flag"
printf "topkk = 1\n" > typo.toml
refuses "topkk" classify --target "$FIXTURES/tiny" --config typo.toml "$FIXTURES/good/a.png"
printf "topk = [\n" > broken.toml
refuses "broken.toml" classify --target "$FIXTURES/tiny" --config broken.toml "$FIXTURES/good/a.png"
printf 'encoder = "target"\nnorm-group = 8\n' > recipe.toml
refuses "options of aha fit, found 'encoder' and others of aha train" fit --config recipe.toml --out run
