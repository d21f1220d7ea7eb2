. "$(dirname "$0")/lib.subr"

expect 0 data info cifar10:sample
says "300"
expect 0 data export cifar10:sample --limit 3 --out images
[ "$(find images -name '*.png' | wc -l)" -eq 3 ] || fail "expected three images"
expect 0 classify --target "$FIXTURES/tiny" images
expect 0 data export cifar10:sample --skip 5 --every 10 --limit 2 --out spread
[ "$(ls spread | cut -c1-5 | tr '\n' ' ')" = "00005 00015 " ] || fail "expected images 5 and 15 under their own numbers, found $(ls spread)"
refuses "cifar10" data get cifar11
refuses "nowhere" data info folder:nowhere
printf 'path,label\nmissing.png,0\n' > list.csv
refuses "missing.png" classify --target "$FIXTURES/tiny" --data list:list.csv
