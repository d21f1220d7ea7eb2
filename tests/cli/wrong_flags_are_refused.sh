. "$(dirname "$0")/lib.subr"

refuses "--tpk" classify --target "$FIXTURES/tiny" --tpk 3 "$FIXTURES/good/a.png"
refuses "expected INT in 1..100000, found 0" classify --target "$FIXTURES/tiny" --topk 0 "$FIXTURES/good/a.png"
refuses "found 'x'" classify --target "$FIXTURES/tiny" --threads x "$FIXTURES/good/a.png"
refuses "expected images or --data, found neither" classify --target "$FIXTURES/tiny"
refuses "did you mean 'bf16'" classify --target "$FIXTURES/tiny" --precision bf15 "$FIXTURES/good/a.png"
refuses "cuda" classify --target "$FIXTURES/tiny" --device gpu "$FIXTURES/good/a.png"
refuses "exclude each other" classify --target "$FIXTURES/tiny" --quiet --verbose "$FIXTURES/good/a.png"
refuses "clasify" clasify
