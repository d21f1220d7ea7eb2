. "$(dirname "$0")/lib.subr"

cp "$FIXTURES/colors.pt" model.pt
expect 0 classify --target model.pt --input-size 32 --topk 1 "$FIXTURES/good/a.png"
grep -q "model.pt is a TorchScript file: taken as script:model.pt" err || fail "expected a word on TorchScript"
cp out plain
expect 0 classify --target script:model.pt --input-size 32 --topk 1 "$FIXTURES/good/a.png"
cmp -s out plain || fail "expected the same classes with and without script:"
refuses "give it as script:model.pt" classify --target vit_b_16:model.pt "$FIXTURES/good/a.png"

expect 0 inspect model.pt
says "TorchScript"
says "--target script:model.pt"
expect 0 inspect --json model.pt
says '"architecture": "script"'
