. "$(dirname "$0")/lib.subr"

common="--arch vit_mini_8 --network width=64:depth=2:heads=2 --data cifar10:sample --holdout 40 --batch-size 16 --seed 3"
expect 0 fit $common --max-steps 6 --out run
says "held-out accuracy"
for file in model.json model.safetensors log.jsonl; do [ -s "run/$file" ] || fail "expected run/$file"; done
expect 0 classify --target run "$FIXTURES/good/a.png"
says "%"
expect 0 fit $common --max-steps 3 --init run --teacher run --out tuned
# Every family learns; a ResNet for small images has a small stem.
expect 0 fit --arch resnet18 --network depths=1,1:widths=16,32:stem_kernel=3:image_size=32 --data cifar10:sample --holdout 40 --batch-size 16 --seed 3 --max-steps 6 --out residual
says "held-out accuracy"
expect 0 classify --target residual "$FIXTURES/good/a.png"
says "%"
refuses "expected normal" fit --arch resnet18 --start mimetic --data cifar10:sample --out never
refuses "already holds a run" fit $common --max-steps 6 --out run
refuses "available" fit --arch vit_mini_9 --data cifar10:sample --out never
refuses "only 260" fit --arch vit_mini_8 --data cifar10:sample --holdout 40 --batch-size 500 --out never
[ ! -e never ] || fail "expected nothing written after a refusal"
