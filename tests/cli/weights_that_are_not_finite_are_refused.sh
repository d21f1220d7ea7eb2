. "$(dirname "$0")/lib.subr"

# spoiled FROM TO: a copy of a model whose last number is NaN, with a card that knows it.
spoiled() {
  cp -r "$1" "$2"
  size=$(wc -c <"$2/model.safetensors")
  printf '\000\000\300\177' | dd of="$2/model.safetensors" bs=1 seek=$((size - 4)) conv=notrunc 2>/dev/null
  sed -i "s/$(sha256sum <"$1/model.safetensors" | cut -d' ' -f1)/$(sha256sum <"$2/model.safetensors" | cut -d' ' -f1)/" "$2/model.json"
}

# Every door: the target of each command, an explainer, the one to go on from, the network to fine-tune.
spoiled "$FIXTURES/tiny" target
for command in classify "explain --method chefer" "compare --methods random"; do
  refuses "expected finite weights, found 1 of" $command --target target "$FIXTURES/good/a.png"
done
refuses "expected finite weights, found 1 of" eval --target target --data cifar10:sample --limit 2 --methods random --out never
refuses "expected finite weights, found 1 of" train --target target --data cifar10:sample --limit 24 --out never
refuses "expected finite weights, found 1 of" fit --arch vit_mini_8 --data cifar10:sample --init target --out never
spoiled "$FIXTURES/example/explainer" explainer
refuses "expected finite weights, found 1 of" explain --target "$FIXTURES/example/target" --explainer explainer "$FIXTURES/good/a.png"
refuses "expected finite weights, found 1 of" train --target "$FIXTURES/example/target" --from explainer --data cifar10:sample --limit 24 --out never
[ ! -e never ] || fail "expected nothing written after a refusal"
